package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// minAuditInterval keeps audits from following one another without a pause.
const minAuditInterval = 10 * time.Second

// validator collects the errors in the order of the fields.
type validator struct {
	ruleIDs []string
	errs    field.ErrorList
}

// Validate returns what is wrong with a configuration that has its defaults, in the order of the types' fields.
// ruleIDs are the rules that it may name.
func Validate(c *WarmPoolConfiguration, ruleIDs []string) field.ErrorList {
	v := &validator{ruleIDs: ruleIDs}
	placeholders := field.NewPath("placeholders")
	v.syntax(placeholders.Child("namespace"), c.Placeholders.Namespace, dnsLabel)
	v.syntax(placeholders.Child("priorityClassName"), c.Placeholders.PriorityClassName, objectName)
	v.workspaces(field.NewPath("workspaces"), c.Workspaces)
	if d := c.AuditInterval; d != nil && d.Duration < minAuditInterval {
		v.invalid(field.NewPath("auditInterval"), d.Duration.String(), "must be at least 10s, so that audits do not burden the API server")
	}
	v.pools(field.NewPath("pools"), c.Pools)
	v.actions(field.NewPath("rules"), c.Rules)
	for i, e := range c.Exemptions {
		v.exemption(field.NewPath("exemptions").Index(i), e)
	}
	return v.errs
}

func (v *validator) add(e *field.Error)                    { v.errs = append(v.errs, e) }
func (v *validator) required(p *field.Path, detail string) { v.add(field.Required(p, detail)) }
func (v *validator) invalid(p *field.Path, value any, fix string) {
	v.add(field.Invalid(p, value, fix))
}
func (v *validator) duplicate(p *field.Path, value any, fix string) {
	e := field.Duplicate(p, value)
	e.Detail = fix
	v.add(e)
}

// form is a syntax of Kubernetes, in words that are shorter than its regular expressions.
type form struct {
	faults func(string) []string
	words  string
}

var (
	dnsLabel   = form{content.IsDNS1123Label, "must be at most 63 lowercase letters, digits and -, with a letter or digit at both ends"}
	objectName = form{content.IsDNS1123Subdomain, "must be at most 253 lowercase letters, digits, - and ., with a letter or digit at both ends"}
	labelKey   = form{content.IsLabelKey, "must be a label key, such as example.com/pool: a DNS name and / (both optional), then at most 63 letters, digits, -, _ and ."}
	labelValue = form{content.IsLabelValue, "must be at most 63 letters, digits, -, _ and ., with a letter or digit at both ends"}
)

// syntax reports whether the value is there and has the form.
func (v *validator) syntax(p *field.Path, value string, f form) bool {
	switch {
	case value == "":
		v.required(p, "must not be empty")
	case len(f.faults(value)) > 0:
		v.invalid(p, value, f.words)
	default:
		return true
	}
	return false
}

// unique calls check for each value that stands there for the first time.
func (v *validator) unique(p *field.Path, values []string, check func(p *field.Path, value string)) {
	first := map[string]int{}
	for i, value := range values {
		at := p.Index(i)
		if j, ok := first[value]; ok {
			v.duplicate(at, value, fmt.Sprintf("%s is the same; remove one of them", p.Index(j)))
			continue
		}
		first[value] = i
		check(at, value)
	}
}

// enum wants one of the allowed values, spelled exactly so.
func enum[T ~string](v *validator, p *field.Path, value T, allowed ...T) {
	if slices.Contains(allowed, value) {
		return
	}
	e := field.NotSupported(p, string(value), allowed)
	e.Detail += didYouMean(string(value), allowed)
	v.add(e)
}

func (v *validator) workspaces(p *field.Path, w Workspaces) {
	if w.Selector != nil {
		v.selector(p.Child("selector"), w.Selector)
	}
	aliases := p.Child("imageAliases")
	for _, alias := range slices.Sorted(maps.Keys(w.ImageAliases)) {
		if strings.TrimSpace(w.ImageAliases[alias]) == "" {
			v.required(aliases.Key(alias), "write the image that the Workspace controller takes for this name, or remove the entry")
		}
	}
	if w.DefaultTemplateNamespace != "" {
		v.syntax(p.Child("defaultTemplateNamespace"), w.DefaultTemplateNamespace, dnsLabel)
	}
	enum(v, p.Child("onConflict"), w.OnConflict, Warn, Deny)
}

func (v *validator) selector(p *field.Path, s *metav1.LabelSelector) {
	if len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0 {
		v.invalid(p, s, "an empty selector would match every pod of the cluster; remove it, which selects the pods with the label "+
			WorkspaceLabel+", or name the labels of your Workspace pods")
		return
	}
	v.labelSelector(p, s)
}

func (v *validator) labelSelector(p *field.Path, s *metav1.LabelSelector) {
	for i, e := range s.MatchExpressions {
		enum(v, p.Child("matchExpressions").Index(i).Child("operator"), e.Operator, metav1.LabelSelectorOpIn,
			metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)
	}
	// The operators are judged above, with the allowed ones in the message.
	faults := metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{AllowUnknownOperatorInRequirement: true}, p)
	// It ranges over the map of labels.
	slices.SortFunc(faults, func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) })
	v.errs = append(v.errs, faults...)
}

func (v *validator) actions(p *field.Path, actions map[string]Action) {
	for _, id := range slices.Sorted(maps.Keys(actions)) {
		v.rule(p.Key(id), id)
		enum(v, p.Key(id), actions[id], Off, Audit, Warn, Deny)
	}
}

// rule wants the id of a rule that exists.
func (v *validator) rule(p *field.Path, id string) {
	if slices.Contains(v.ruleIDs, id) {
		return
	}
	v.invalid(p, id, "no rule has this id"+didYouMean(id, v.ruleIDs)+`; the command "warmpool rules" lists them`)
}

func (v *validator) exemption(p *field.Path, e Exemption) {
	if len(e.Rules) == 0 {
		v.required(p.Child("rules"), "list the ids of the rules that do not apply")
	}
	v.unique(p.Child("rules"), e.Rules, v.rule)
	v.syntax(p.Child("namespace"), e.Namespace, dnsLabel)
	if strings.ContainsAny(e.Name, "*?[") {
		v.invalid(p.Child("name"), e.Name, "is taken literally, not as a pattern; give the object's whole name, or none for every object of the namespace")
	}
	if strings.TrimSpace(e.Reason) == "" {
		v.required(p.Child("reason"), "say why these rules do not apply, for those who read it later")
	}
	if _, ok := e.end(); !ok && e.Until != "" {
		v.invalid(p.Child("until"), e.Until, "must be the last day on which the exemption applies, as YYYY-MM-DD, for example 2027-01-31; without it there is no end")
	}
}
