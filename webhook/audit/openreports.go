package audit

import (
	"fmt"
	"io"
	"maps"
	"slices"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"warmpool.sh/webhook/policy"
)

// reportName is that of every report, and of the source of its results.
const reportName = "warmpool"

// printOpenReports writes a ClusterReport, about what has no namespace, and a Report for each namespace with findings,
// as YAML documents that kubectl applies.
func printOpenReports(out io.Writer, r *Report) error {
	results := map[string][]openreports.ReportResult{}
	for i := range r.Findings {
		f := &r.Findings[i]
		results[f.Namespace] = append(results[f.Namespace], r.result(f))
	}
	var documents []any
	meta := metav1.ObjectMeta{Name: reportName, Labels: map[string]string{"app.kubernetes.io/managed-by": reportName}}
	documents = append(documents, &openreports.ClusterReport{
		TypeMeta:   metav1.TypeMeta{APIVersion: openreports.SchemeGroupVersion.String(), Kind: "ClusterReport"},
		ObjectMeta: meta, Source: reportName, Summary: summaryOf(results[""]), Results: results[""],
	})
	delete(results, "")
	for _, namespace := range slices.Sorted(maps.Keys(results)) {
		meta.Namespace = namespace
		documents = append(documents, &openreports.Report{
			TypeMeta:   metav1.TypeMeta{APIVersion: openreports.SchemeGroupVersion.String(), Kind: "Report"},
			ObjectMeta: meta, Source: reportName,
			Scope:   &corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: namespace},
			Summary: summaryOf(results[namespace]), Results: results[namespace],
		})
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
		Source: reportName, Policy: reportName, Rule: f.Rule, Category: "Warm pools",
		Severity: outcomes[f.Severity].severity, Result: outcomes[f.Severity].result, Scored: f.Severity == policy.SeverityError,
		Description: fmt.Sprintf("%s. %s", f.Message, f.Fix),
		Timestamp:   metav1.Timestamp{Seconds: r.Time.Unix()},
		Properties:  map[string]string{},
	}
	for name, value := range map[string]string{"field": f.Field, "fix": f.Fix, "pool": f.Pool} {
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

func summaryOf(results []openreports.ReportResult) openreports.ReportSummary {
	var s openreports.ReportSummary
	for i := range results {
		if results[i].Result == "fail" {
			s.Fail++
		} else {
			s.Warn++
		}
	}
	return s
}
