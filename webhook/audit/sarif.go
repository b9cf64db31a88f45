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
	invocation := sarif.NewInvocation().WithExecutionSuccessful(true)
	for _, note := range r.Notes {
		invocation.AddToolExecutionNotification(sarif.NewNotification().WithLevel("note").WithMessage(sarif.NewTextMessage(note)))
	}
	run := sarif.NewRun().WithTool(sarif.NewTool().WithDriver(driver)).WithInvocations([]*sarif.Invocation{invocation})
	seen := map[string]int{}
	for i := range r.Findings {
		f := &r.Findings[i]
		print := f.fingerprint()
		seen[print]++
		run.CreateResultForRule(f.Rule).
			WithLevel(levels[f.Severity]).
			WithMessage(sarif.NewTextMessage(f.Message + ".\nFix: " + f.Fix)).
			WithLocations([]*sarif.Location{r.location(f)}).
			WithPartialFingerprints(map[string]string{"warmpool/v1": fmt.Sprintf("%s:%d", print, seen[print])})
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

// location is the finding's place in its file; where it has none, that of an object of the same report, or the object's
// name as if it were a path, since a result without a file makes GitHub refuse the whole report.
func (r *Report) location(f *Finding) *sarif.Location {
	place := f.Place
	for i := range r.Findings {
		if place.File != "" {
			break
		}
		if other := &r.Findings[i]; other.Pool == f.Pool {
			place.File = other.Place.File
		}
	}
	if place.File == "" {
		place.File = strings.ToLower(strings.ReplaceAll(cmp.Or(f.object(), "pool "+f.Pool), " ", "/"))
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
