package audit

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"warmpool.sh/webhook/phrase"
	"warmpool.sh/webhook/policy"
)

// ReportName is that of every report object, and of the source of its results.
const ReportName = "warmpool"

// ManagedByLabel has the value ReportName on every report object.
const ManagedByLabel = "app.kubernetes.io/managed-by"

// maxReportSize bounds the JSON of the results of one report object, in bytes: etcd takes 1.5 MiB at once, and the field
// managers come on top. maxText bounds a message or a fix among them.
const (
	maxReportSize = 1 << 20
	maxText       = 4 << 10
)

// printOpenReports writes the report objects as YAML documents that kubectl applies. There is always a ClusterReport, so
// that an earlier one is replaced.
func printOpenReports(out io.Writer, r *Report) error {
	ofCluster, ofNamespaces := r.OpenReports()
	documents := []any{ofCluster}
	for _, report := range ofNamespaces {
		documents = append(documents, report)
	}
	for i, document := range documents {
		text, err := yaml.Marshal(document)
		if err != nil {
			return err
		}
		if i > 0 {
			text = append([]byte("---\n"), text...)
		}
		if _, err := out.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// OpenReports gives the report as objects of openreports.io: a ClusterReport, about what has no namespace and perhaps
// without results, and a Report for each namespace with findings, in the order of their names. All are called ReportName.
// Each has the worst results that fit into an object, and says how many there are beside; its summary counts all.
func (r *Report) OpenReports() (ofCluster *openreports.ClusterReport, ofNamespaces []*openreports.Report) {
	findings := map[string][]*Finding{}
	for i := range r.Findings {
		f := &r.Findings[i]
		findings[f.Namespace] = append(findings[f.Namespace], f)
	}
	meta := metav1.ObjectMeta{Name: ReportName, Labels: map[string]string{ManagedByLabel: ReportName}}
	ofCluster = &openreports.ClusterReport{
		TypeMeta:   metav1.TypeMeta{APIVersion: openreports.SchemeGroupVersion.String(), Kind: "ClusterReport"},
		ObjectMeta: meta, Source: ReportName,
	}
	ofCluster.Results, ofCluster.Summary = r.results(findings[""])
	delete(findings, "")
	for _, namespace := range slices.Sorted(maps.Keys(findings)) {
		meta.Namespace = namespace
		report := &openreports.Report{
			TypeMeta:   metav1.TypeMeta{APIVersion: openreports.SchemeGroupVersion.String(), Kind: "Report"},
			ObjectMeta: meta, Source: ReportName,
			Scope: &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: namespace},
		}
		report.Results, report.Summary = r.results(findings[namespace])
		ofNamespaces = append(ofNamespaces, report)
	}
	return ofCluster, ofNamespaces
}

// results are those of the findings that fit, which come worst first, and one more that says what does not.
func (r *Report) results(findings []*Finding) ([]openreports.ReportResult, openreports.ReportSummary) {
	var results []openreports.ReportResult
	var summary openreports.ReportSummary
	size, left := 0, 0
	for _, f := range findings {
		result := r.result(f)
		if result.Result == "fail" {
			summary.Fail++
		} else {
			summary.Warn++
		}
		text, err := json.Marshal(result)
		if size += len(text); left > 0 || err != nil || size > maxReportSize {
			left++
			continue
		}
		results = append(results, result)
	}
	if left > 0 {
		summary.Skip = 1
		results = append(results, openreports.ReportResult{
			Source: ReportName, Policy: ReportName, Category: category, Result: "skip", Timestamp: metav1.Timestamp{Seconds: r.Time.Unix()},
			Description: fmt.Sprintf("%d more findings, no worse than these, have no room here. warmpool audit shows all.", left),
		})
	}
	return results, summary
}

// category groups the results beside those of other tools.
const category = "Warm pools"

// outcomes are how severities are called there: what breaks a pool fails, the rest warns.
var outcomes = map[policy.Severity]struct {
	severity openreports.ResultSeverity
	result   openreports.Result
}{
	policy.SeverityError:   {"high", "fail"},
	policy.SeverityWarning: {"medium", "warn"},
	policy.SeverityInfo:    {"info", "warn"},
}

func (r *Report) result(f *Finding) openreports.ReportResult {
	result := openreports.ReportResult{
		Source: ReportName, Policy: ReportName, Rule: f.Rule, Category: category,
		Severity: outcomes[f.Severity].severity, Result: outcomes[f.Severity].result, Scored: f.Severity == policy.SeverityError,
		Description: fmt.Sprintf("%s. %s", phrase.Cut(f.Message, maxText), phrase.Cut(f.Fix, maxText)),
		Timestamp:   metav1.Timestamp{Seconds: r.Time.Unix()},
		Properties:  map[string]string{},
	}
	for name, value := range map[string]string{"field": phrase.Cut(f.Field, maxText), "fix": phrase.Cut(f.Fix, maxText), "pool": f.Pool} {
		if value != "" {
			result.Properties[name] = value
		}
	}
	if f.Place.File != "" {
		result.Properties["place"] = f.Place.text()
	}
	if f.Name != "" {
		result.Subjects = []corev1.ObjectReference{{Kind: f.Kind, Namespace: f.Namespace, Name: f.Name}}
	}
	return result
}
