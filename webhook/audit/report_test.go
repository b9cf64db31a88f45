package audit

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"
	"time"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"warmpool.sh/webhook/policy"
)

func rule(t *testing.T, id string) *policy.Rule {
	t.Helper()
	for _, r := range policy.Rules() {
		if r.ID == id {
			return r
		}
	}
	t.Fatalf("no rule %s", id)
	return nil
}

func finding(t *testing.T, id string, severity policy.Severity, kind, namespace, name string, err *field.Error) policy.Finding {
	t.Helper()
	pool := "cpu"
	if kind == "" {
		pool = ""
	}
	return policy.Finding{Rule: rule(t, id), Severity: severity, Object: policy.Ref{Kind: kind, Namespace: namespace, Name: name}, Pool: pool, Error: err, Fix: "Do it."}
}

var sampleTime = time.Unix(1_700_000_000, 0)

// sample has findings in the wrong order, one of them without object, and text that is hostile to each format.
func sample(t *testing.T) *Report {
	t.Helper()
	at := field.NewPath
	hostile := "</testsuite> ]]> \x1b[31m \x00 <b> & \u2028 \"'\n--- {{ }}"
	findings := []policy.Finding{
		finding(t, "placeholder-size", policy.SeverityInfo, "Deployment", "b", "one", field.Forbidden(at("spec"), "not verified: this user may not list nodes")),
		finding(t, "placeholder-size", policy.SeverityError, "Pod", "a", "one", field.Invalid(at("spec"), "x", "second by kind")),
		finding(t, "placeholder-size", policy.SeverityError, "Deployment", "b", "one", field.Invalid(at("spec", "x"), hostile, "fifth by field")),
		finding(t, "placeholder-size", policy.SeverityError, "Deployment", "b", "one", field.Invalid(at("spec", "a"), "x", "fourth by field")),
		finding(t, "placeholder-qos", policy.SeverityError, "Deployment", "b", "one", field.Required(at("spec", "z"), "third by rule")),
		finding(t, "placeholder-size", policy.SeverityError, "Deployment", "a", "two", field.Required(at("spec"), "second by name")),
		finding(t, "placeholder-size", policy.SeverityError, "Deployment", "a", "one", field.Required(at("spec"), "first by namespace")),
		finding(t, "webhook-scope", policy.SeverityWarning, "", "", "", field.Required(nil, "of no object")),
	}
	r := New(findings, 3, func(object policy.Ref, path string) Place {
		if object.Kind == "" {
			return Place{}
		}
		return Place{File: object.Namespace + "/my file.yaml", Line: len(path)}
	})
	r.Time, r.Version = sampleTime, "v1"
	return r
}

func printed(t *testing.T, r *Report, format string, screen Screen) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, r.Print(&out, format, screen))
	return out.String()
}

func TestOrderAndCounts(t *testing.T) {
	r := sample(t)
	var messages []string
	for _, f := range r.Findings {
		_, detail, _ := strings.Cut(f.Message, ": ")
		messages = append(messages, detail)
	}
	assert.Equal(t, "first by namespace", messages[0])
	assert.Equal(t, "second by name", messages[1])
	assert.Equal(t, "third by rule", messages[2])
	assert.Contains(t, messages[3], "fourth")
	assert.Contains(t, messages[4], "fifth")
	assert.Equal(t, "Pod", r.Findings[5].Kind)
	assert.Equal(t, policy.SeverityInfo, r.Findings[7].Severity)
	assert.Equal(t, "not verified: this user may not list nodes", r.Findings[7].Message)
	assert.Equal(t, Summary{Objects: 3, Error: 6, Warning: 1, Info: 1}, r.Summary)
	assert.Equal(t, 6, r.AtLeast(policy.SeverityError))
	assert.Equal(t, 7, r.AtLeast(policy.SeverityWarning))

	r.NoteUnreadable([]string{"this user may not list nodes", "this user may not list pods"})
	assert.Equal(t, []string{"this user may not list nodes: not verified: placeholder-size", "this user may not list pods"}, r.Notes)

	r.Filter(func(f *Finding) bool { return f.Severity != policy.SeverityError })
	assert.Equal(t, Summary{Objects: 3, Warning: 1, Info: 1}, r.Summary)
	assert.Len(t, r.Findings, 2)
}

func TestJSONHasTheContractAndNothingElse(t *testing.T) {
	r := sample(t)
	r.Notes = []string{"not in it"}
	r.Filter(func(f *Finding) bool { return f.Kind == "Pod" })
	want := `{
  "summary": {
    "objects": 3,
    "error": 1,
    "warning": 0,
    "info": 0
  },
  "findings": [
    {
      "rule": "placeholder-size",
      "severity": "error",
      "kind": "Pod",
      "namespace": "a",
      "name": "one",
      "field": "spec",
      "message": "Invalid value: \"x\": second by kind",
      "fix": "Do it.",
      "pool": "cpu"
    }
  ]
}
`
	assert.Equal(t, want, printed(t, r, "json", Screen{}))
	assert.YAMLEq(t, want, printed(t, r, "yaml", Screen{}))
	r.Filter(func(*Finding) bool { return false })
	assert.Contains(t, printed(t, r, "json", Screen{}), `"findings": []`)
}

func TestTableWrapsAndIsSafe(t *testing.T) {
	r := sample(t)
	r.Notes = []string{"a note that is long enough to be wrapped by a narrow screen"}
	text := printed(t, r, "table", Screen{Width: 40})
	assert.True(t, strings.HasPrefix(text, "3 objects judged: 6 errors, 1 warning, 1\ninfo\n* a note that is long"), text)
	assert.NotContains(t, text, "\x1b")
	assert.NotContains(t, text, "\x00")
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "  ") && strings.Count(strings.TrimSpace(line), " ") > 0 {
			assert.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\n"))), 40, line)
		}
	}
	colored := printed(t, r, "table", Screen{Width: 40, Color: true})
	assert.Contains(t, colored, "\x1b[1;31mERROR\x1b[0m placeholder-size  Deployment a/one  pool cpu\n")
	assert.Equal(t, 16, strings.Count(colored, "\x1b"), "only the severities are coloured")
	assert.Contains(t, printed(t, r, "table", Screen{}), "  At:  a/my file.yaml:4\n")
}

func TestSARIFIsValid(t *testing.T) {
	r := sample(t)
	text := printed(t, r, "sarif", Screen{})
	report, err := sarif.FromString(text, sarif.WithStrictValidation())
	require.NoError(t, err)
	require.NoError(t, report.Validate(), "by the schema of SARIF 2.1.0 that the library carries")
	assert.Equal(t, "2.1.0", report.Version)

	run := report.Runs[0]
	require.Len(t, run.Results, 8)
	require.Len(t, run.Tool.Driver.Rules, len(policy.Rules()))
	prints := map[string]bool{}
	levels := map[string]int{}
	for _, result := range run.Results {
		assert.Equal(t, *result.RuleID, *run.Tool.Driver.Rules[result.RuleIndex].ID)
		assert.NotEmpty(t, *run.Tool.Driver.Rules[result.RuleIndex].Help.Text)
		require.Len(t, result.Locations, 1)
		assert.NotEmpty(t, *result.Locations[0].PhysicalLocation.ArtifactLocation.URI)
		assert.Positive(t, *result.Locations[0].PhysicalLocation.Region.StartLine)
		prints[result.PartialFingerprints["warmpool/v1"]] = true
		levels[result.Level]++
	}
	assert.Len(t, prints, 8, "no two findings are the same")
	assert.Equal(t, map[string]int{"error": 6, "warning": 1, "note": 1}, levels)
	assert.Equal(t, "a/my%20file.yaml", *run.Results[0].Locations[0].PhysicalLocation.ArtifactLocation.URI)

	assert.True(t, *run.Invocations[0].ExecutionSuccessful)
	for i := range r.Findings {
		r.Findings[i].Place.Line += 100
	}
	r.Incomplete = true
	moved, err := sarif.FromString(printed(t, r, "sarif", Screen{}))
	require.NoError(t, err)
	for i, result := range moved.Runs[0].Results {
		assert.Equal(t, run.Results[i].PartialFingerprints, result.PartialFingerprints, "lines may move")
	}
	assert.False(t, *moved.Runs[0].Invocations[0].ExecutionSuccessful)
	// The check can fail: what is no SARIF is refused.
	report.Runs[0].Results[0].Level = "terrible"
	assert.Error(t, report.Validate())
}

func TestURI(t *testing.T) {
	for file, want := range map[string]string{
		"a/b.yaml": "a/b.yaml", "./a/../b.yaml": "b.yaml", "standard input": "standard%20input", "/tmp/a b.yaml": "file:///tmp/a%20b.yaml",
	} {
		assert.Equal(t, want, uri(file))
	}
}

func TestJUnit(t *testing.T) {
	text := printed(t, sample(t), "junit", Screen{})
	var suites junitSuites
	require.NoError(t, xml.Unmarshal([]byte(text), &suites))
	assert.Equal(t, 7, suites.Failures)
	assert.Equal(t, 1, suites.Skipped, "what is not verified has not failed")
	require.Len(t, suites.Suites, len(policy.Rules()), "one suite for each rule")
	failures := 0
	for _, suite := range suites.Suites {
		assert.Len(t, suite.Cases, suite.Tests, suite.Name)
		assert.NotZero(t, suite.Tests, suite.Name)
		for _, c := range suite.Cases {
			if c.Failure != nil {
				failures++
				assert.Contains(t, c.Failure.Text, "Fix: Do it.")
				assert.Contains(t, []string{"error", "warning", "info"}, c.Failure.Type)
			}
		}
	}
	assert.Equal(t, 7, failures)
}

func TestOpenReports(t *testing.T) {
	documents := strings.Split(printed(t, sample(t), "openreports", Screen{}), "\n---\n")
	require.Len(t, documents, 3, "one of the cluster, and one for each namespace")
	var of openreports.ClusterReport
	require.NoError(t, yaml.UnmarshalStrict([]byte(documents[0]), &of))
	assert.Equal(t, "ClusterReport", of.Kind)
	assert.Equal(t, openreports.ReportSummary{Warn: 1}, of.Summary)
	for i, namespace := range []string{"a", "b"} {
		var report openreports.Report
		require.NoError(t, yaml.UnmarshalStrict([]byte(documents[i+1]), &report))
		assert.Equal(t, namespace, report.Namespace)
		assert.Equal(t, namespace, report.Scope.Name)
		assert.Equal(t, len(report.Results), report.Summary.Fail+report.Summary.Warn)
		for _, result := range report.Results {
			assert.Equal(t, "warmpool", result.Policy)
			assert.NotEmpty(t, result.Rule)
			assert.Equal(t, int64(1_700_000_000), result.Timestamp.Seconds)
			assert.Equal(t, namespace, result.Subjects[0].Namespace)
		}
	}
	empty := New(nil, 0, nil)
	var cleared openreports.ClusterReport
	require.NoError(t, yaml.UnmarshalStrict([]byte(printed(t, empty, "openreports", Screen{})), &cleared))
	assert.Empty(t, cleared.Results, "it replaces an earlier report")
}

// An object that etcd refuses would tell no one anything.
func TestOpenReportsAreBounded(t *testing.T) {
	const count = 3000
	var findings []policy.Finding
	for i := range count {
		severity := policy.SeverityWarning
		if i%2 == 0 {
			severity = policy.SeverityError
		}
		findings = append(findings, finding(t, "placeholder-size", severity, "Pod", "a", fmt.Sprintf("pod-%d", i), field.Required(field.NewPath("spec"), strings.Repeat("long ", 2000))))
	}
	ofCluster, ofNamespaces := New(findings, count, nil).OpenReports()
	assert.Empty(t, ofCluster.Results)
	require.Len(t, ofNamespaces, 1)
	report := ofNamespaces[0]
	text, err := json.Marshal(report)
	require.NoError(t, err)
	assert.Less(t, len(text), 1200<<10)
	assert.Equal(t, openreports.ReportSummary{Fail: count / 2, Warn: count / 2, Skip: 1}, report.Summary, "of all")
	shown := len(report.Results) - 1
	require.Greater(t, shown, 100)
	for _, result := range report.Results[:shown] {
		assert.Equal(t, openreports.Result("fail"), result.Result, "the worst come first")
	}
	assert.Equal(t, fmt.Sprintf("%d more findings, no worse than these, have no room here. warmpool audit shows all.", count-shown), report.Results[shown].Description)
}

func TestUnknownFormat(t *testing.T) {
	err := New(nil, 0, nil).Print(&bytes.Buffer{}, "html5", Screen{})
	assert.EqualError(t, err, `no output format "html5"; use one of `+strings.Join(Formats(), ", "))
}

// Every format is deterministic, and tells a writer that fails.
func TestFormatsAreDeterministicAndTellFailures(t *testing.T) {
	for _, format := range Formats() {
		t.Run(format, func(t *testing.T) {
			assert.Equal(t, printed(t, sample(t), format, Screen{}), printed(t, sample(t), format, Screen{}))
			require.Error(t, sample(t).Print(full{}, format, Screen{}))
		})
	}
	assert.True(t, json.Valid([]byte(printed(t, sample(t), "json", Screen{}))))
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, assert.AnError }
