// Package audit makes reports of what the rules find in a whole cluster, and prints them.
//
// findings of an Evaluator -> one Report in a fixed order (report.go) -> one printer per file. infer.go makes a
// configuration for clusters that have none. Nothing here reads a cluster or a clock.
package audit

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/poolview"
)

// Report is what an audit found, worst first. As JSON and YAML it has Summary and Findings only.
type Report struct {
	Summary  Summary   `json:"summary"`
	Findings []Finding `json:"findings"`

	// Notes say how the audit came about: where the configuration is from, and what could not be read.
	Notes []string `json:"-"`
	// Incomplete tells that some documents are broken and were not audited.
	Incomplete bool `json:"-"`
	// Rules are those that were asked, in the order of the table.
	Rules []*policy.Rule `json:"-"`
	// Time is when the audit ran, and Version that of warmpool.
	Time    time.Time `json:"-"`
	Version string    `json:"-"`

	// What only the page shows: what was audited, where the configuration is from, and the pools as they are drawn.
	Subject, Configuration string           `json:"-"`
	Views                  []*poolview.View `json:"-"`
}

// Summary counts the objects that were judged and the findings by severity.
type Summary struct {
	Objects int `json:"objects"`
	Error   int `json:"error"`
	Warning int `json:"warning"`
	Info    int `json:"info"`
}

// Finding is one violation of a rule. Kind, Namespace, Name, Field and Pool are empty where there is none.
type Finding struct {
	Rule      string          `json:"rule"`
	Severity  policy.Severity `json:"severity"`
	Kind      string          `json:"kind"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	Field     string          `json:"field"`
	Message   string          `json:"message"`
	Fix       string          `json:"fix"`
	Pool      string          `json:"pool"`

	Place Place `json:"-"`
}

// Place is where the field of a finding stands in a manifest; File is empty in a live cluster, and Line, from 1, is 0
// where it is not known.
type Place struct {
	File string
	Line int
}

// New makes a Report of an Evaluator's findings about so many objects. place tells where the field of an object stands;
// nil in a live cluster.
func New(findings []policy.Finding, objects int, place func(object policy.Ref, field string) Place) *Report {
	r := &Report{Summary: Summary{Objects: objects}, Findings: make([]Finding, 0, len(findings)), Rules: policy.Rules()}
	for i := range findings {
		f := &findings[i]
		found := Finding{
			Rule: f.Rule.ID, Severity: f.Severity, Kind: f.Object.Kind, Namespace: f.Object.Namespace, Name: f.Object.Name,
			Field: f.Error.Field, Message: message(f.Error), Fix: f.Fix, Pool: f.Pool,
		}
		if place != nil {
			found.Place = place(f.Object, found.Field)
		}
		r.Findings = append(r.Findings, found)
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(rank(a.Severity), rank(b.Severity)), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
	})
	r.count()
	return r
}

// unverified tells that a fact was missing, and no fault was found.
func (f *Finding) unverified() bool { return strings.HasPrefix(f.Message, policy.NotVerified) }

// message is the error without its field. That something is "Forbidden" says nothing to a reader.
func message(err *field.Error) string {
	if err.Type == field.ErrorTypeForbidden {
		return err.Detail
	}
	return err.ErrorBody()
}

// rank orders severities, the worst first.
func rank(s policy.Severity) int {
	return slices.Index([]policy.Severity{policy.SeverityError, policy.SeverityWarning, policy.SeverityInfo}, s)
}

// Filter keeps the findings that keep takes, and counts anew.
func (r *Report) Filter(keep func(*Finding) bool) {
	r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool { return !keep(&f) })
	r.count()
}

func (r *Report) count() {
	r.Summary = Summary{Objects: r.Summary.Objects}
	for i := range r.Findings {
		switch r.Findings[i].Severity {
		case policy.SeverityError:
			r.Summary.Error++
		case policy.SeverityWarning:
			r.Summary.Warning++
		case policy.SeverityInfo:
			r.Summary.Info++
		}
	}
}

// AtLeast counts the findings of the severity and of worse ones.
func (r *Report) AtLeast(severity policy.Severity) int {
	count := 0
	for i := range r.Findings {
		if rank(r.Findings[i].Severity) <= rank(severity) {
			count++
		}
	}
	return count
}

// NoteUnreadable notes what could not be read, with the rules that say that they are not verified for it.
func (r *Report) NoteUnreadable(reasons []string) {
	for _, reason := range reasons {
		var rules []string
		for i := range r.Findings {
			if f := &r.Findings[i]; strings.Contains(f.Message, reason) && !slices.Contains(rules, f.Rule) {
				rules = append(rules, f.Rule)
			}
		}
		if len(rules) > 0 {
			slices.Sort(rules)
			reason += ": not verified: " + strings.Join(rules, ", ")
		}
		r.Notes = append(r.Notes, reason)
	}
}

// object names the finding's object, such as "Deployment overprovisioning/cpu"; it may be empty.
func (f *Finding) object() string {
	name := f.Name
	if f.Namespace != "" {
		name = f.Namespace + "/" + name
	}
	return strings.TrimSpace(f.Kind + " " + name)
}
