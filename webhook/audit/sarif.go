package audit

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"warmpool.sh/webhook/policy"
)

// levels are SARIF's names of the severities.
var levels = map[policy.Severity]string{
	policy.SeverityError: "error", policy.SeverityWarning: "warning", policy.SeverityInfo: "note",
}

// printSARIF writes SARIF 2.1.0, as GitHub's code scanning takes it: every result has a place and a fingerprint that
// stays while lines move.
func printSARIF(out io.Writer, r *Report) error {
	report := sarif.NewReport()
	report.AddRun(r.run())
	return report.PrettyWrite(out)
}

func (r *Report) run() *sarif.Run {
	driver := sarif.NewToolComponent().WithName("warmpool").WithVersion(cmp.Or(r.Version, "unknown"))
	for _, rule := range r.Rules {
		driver.AddRule(descriptor(rule))
	}
	invocation := sarif.NewInvocation().WithExecutionSuccessful(!r.Incomplete)
	for _, note := range r.Notes {
		invocation.AddToolExecutionNotification(sarif.NewNotification().WithLevel("note").WithMessage(sarif.NewTextMessage(note)))
	}
	run := sarif.NewRun().WithTool(sarif.NewTool().WithDriver(driver)).WithInvocations([]*sarif.Invocation{invocation})
	seen := map[string]int{}
	for i := range r.Findings {
		f := &r.Findings[i]
		fingerprint := f.fingerprint()
		seen[fingerprint]++
		run.CreateResultForRule(f.Rule).
			WithLevel(levels[f.Severity]).
			WithMessage(sarif.NewTextMessage(f.Message + ".\nFix: " + f.Fix)).
			WithLocations([]*sarif.Location{r.location(f)}).
			WithPartialFingerprints(map[string]string{"warmpool/v1": fmt.Sprintf("%s:%d", fingerprint, seen[fingerprint])})
	}
	return run
}

func descriptor(rule *policy.Rule) *sarif.ReportingDescriptor {
	text := func(s string) *sarif.MultiformatMessageString { return sarif.NewMultiformatMessageString().WithText(s) }
	return sarif.NewRule(rule.ID).
		WithName(rule.ID).
		WithShortDescription(text(fmt.Sprintf("%s: %s", rule.Subject, rule.ID))).
		WithFullDescription(text(rule.Summary)).
		WithHelp(text(rule.Summary + " " + rule.Fix).WithMarkdown(fmt.Sprintf("%s\n\n**Fix:** %s", rule.Summary, rule.Fix))).
		WithDefaultConfiguration(sarif.NewReportingConfiguration().WithLevel(levels[rule.Severity])).
		WithProperties(sarif.NewPropertyBag().WithTags([]string{"kubernetes", "warm-pool"}))
}

// location is the finding's place in its file. Where it has none, it is the file of another finding, of the same pool if
// there is one, or the object's name as if it were a path: a result without a file makes GitHub refuse the whole report.
func (r *Report) location(f *Finding) *sarif.Location {
	place := f.Place
	if place.File == "" {
		place.File = cmp.Or(r.fileOf(f.Pool), strings.ToLower(strings.ReplaceAll(cmp.Or(f.object(), "pool "+f.Pool), " ", "/")))
	}
	physical := sarif.NewPhysicalLocation().
		WithArtifactLocation(sarif.NewSimpleArtifactLocation(uri(place.File))).
		WithRegion(sarif.NewRegion().WithStartLine(max(place.Line, 1)))
	location := sarif.NewLocationWithPhysicalLocation(physical)
	if object := f.object(); object != "" {
		location.WithLogicalLocations([]*sarif.LogicalLocation{
			sarif.NewLogicalLocation().WithKind("object").WithFullyQualifiedName(object + " " + f.Field),
		})
	}
	return location
}

// fileOf is the first file with a finding about the pool, else the first with any; empty in a live cluster.
func (r *Report) fileOf(pool string) string {
	first := ""
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Place.File != "" && f.Pool == pool {
			return f.Place.File
		}
		first = cmp.Or(first, f.Place.File)
	}
	return first
}

// uri is a file as a URI: relative to where the audit runs, which is the root of the repository in CI.
func uri(file string) string {
	slashed := filepath.ToSlash(filepath.Clean(file))
	if filepath.IsAbs(file) {
		return (&url.URL{Scheme: "file", Path: slashed}).String()
	}
	return (&url.URL{Path: slashed}).EscapedPath()
}

// fingerprint tells the finding from others whatever its numbers and lines.
func (f *Finding) fingerprint() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{f.Rule, f.Kind, f.Namespace, f.Name, f.Field, f.Pool}, "\x00")))
	return hex.EncodeToString(sum[:16])
}
