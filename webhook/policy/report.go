package policy

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
)

// report gathers findings, in the order in which rules make them.
type report struct{ findings []*Finding }

// complete completes the findings from an index on, which are those of one rule.
func (r *report) complete(from int, rule *Rule, action config.Action) {
	for _, f := range r.findings[from:] {
		f.complete(rule, action)
	}
}

func (r *report) values() []Finding {
	if len(r.findings) == 0 {
		return nil
	}
	values := make([]Finding, len(r.findings))
	for i, f := range r.findings {
		values[i] = *f
	}
	return values
}

// about is what findings are about: an object, and its pool.
type about struct {
	Ref
	pool string
	*report
}

func (a about) add(err *field.Error) *Finding {
	f := &Finding{Object: a.Ref, Pool: a.pool, Error: err}
	a.findings = append(a.findings, f)
	return f
}

// invalid reports a value that a rule finds fault with.
func (a about) invalid(path *field.Path, value any, format string, args ...any) *Finding {
	return a.add(field.Invalid(path, value, fmt.Sprintf(format, args...)))
}

// required reports what is absent.
func (a about) required(path *field.Path, format string, args ...any) *Finding {
	return a.add(field.Required(path, fmt.Sprintf(format, args...)))
}

// forbidden reports what should not be there, where no single value is at fault.
func (a about) forbidden(path *field.Path, format string, args ...any) *Finding {
	return a.add(field.Forbidden(path, fmt.Sprintf(format, args...)))
}

// notVerified reports that a fact is missing.
func (a about) notVerified(path *field.Path, format string, args ...any) *Finding {
	return a.forbidden(path, "").notVerified(fmt.Sprintf(format, args...), "Check it by hand, or make the missing facts readable.")
}

// kind is what is known about the objects of one kind: cluster.Facts of any type.
type kind interface {
	Known() bool
	Reason() string
	ReasonIn(namespace string) string
	Whole() bool
	Missing() string
	Malformed(key string) string
	AllMalformed() []string
}
