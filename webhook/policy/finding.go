package policy

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
)

// Finding is one violation of a rule.
type Finding struct {
	// Rule that was violated.
	Rule *Rule
	// Object that violates it, and its pool.
	Object Ref
	Pool   string
	// Action in force at admission: the configured one, at most the finding's cap.
	Action config.Action
	// Severity of the finding, the rule's unless the finding is milder.
	Severity Severity
	// Error has the field path, the kind of fault, the value and the message with its numbers.
	Error *field.Error
	// Fix is the rule's unless the finding knows better.
	Fix string

	// atMost caps the action: what cannot be judged, or holds in part, is no reason to deny.
	atMost config.Action
	// key distinguishes findings of one rule where the field path does not, or where the path is an index that moves.
	key string
	// short, where set, is what no node has room for: an update is denied only for asking for more of it, whichever node
	// comes nearest.
	short *short
	// amount is how much is wrong, where that can grow; an update is denied when it did.
	amount int64
}

// Ref names an object.
type Ref struct {
	Kind, Namespace, Name string
	// Definition is which of several definitions in files is meant, from 1; 0: the first, or the only one.
	Definition int
}

// complete adds what the rule says where the finding says nothing itself.
func (f *Finding) complete(rule *Rule, action config.Action) {
	f.Rule, f.Action = rule, action
	if f.atMost != "" && strictness[f.atMost] < strictness[action] {
		f.Action = f.atMost
	}
	f.Severity = cmp.Or(f.Severity, rule.Severity)
	f.Fix = cmp.Or(f.Fix, rule.Fix)
}

var strictness = map[config.Action]int{config.Off: 0, config.Audit: 1, config.Warn: 2, config.Deny: 3}

// identity of a violation across an update.
func (f *Finding) identity() string { return f.Rule.ID + " " + cmp.Or(f.key, f.Error.Field) }

// atMostWarn marks a finding that is no reason to deny.
func (f *Finding) atMostWarn() *Finding {
	f.atMost = config.Warn
	return f
}

// atMostAudit marks a finding that whoever applies the object can do nothing about.
func (f *Finding) atMostAudit() *Finding {
	f.atMost = config.Audit
	return f
}

// milder lowers the finding's severity.
func (f *Finding) milder(s Severity) *Finding {
	f.Severity = s
	return f
}

// withKey names the violation for comparisons across an update.
func (f *Finding) withKey(key string) *Finding {
	f.key = key
	return f
}

// withFix replaces the rule's fix by a more exact one.
func (f *Finding) withFix(format string, args ...any) *Finding {
	f.Fix = fmt.Sprintf(format, args...)
	return f
}

// withAmount says how much is wrong.
func (f *Finding) withAmount(amount int64) *Finding {
	f.amount = amount
	return f
}

// notVerified makes of the finding one that a fact is missing for: reported, never a denial.
func (f *Finding) notVerified(why, fix string) *Finding {
	f.Error.Type, f.Error.BadValue, f.Error.Detail = field.ErrorTypeForbidden, "", NotVerified+why
	f.Fix, f.key = fix, "not verified"
	return f.atMostWarn().milder(SeverityInfo)
}

// orElsewhere is for a finding that follows from the absence of an object. Where only a part of the cluster is known the
// object may be elsewhere, and all that can be said is why it matters.
func (f *Finding) orElsewhere(facts kind, format string, args ...any) *Finding {
	if facts.Whole() {
		return f
	}
	return f.notVerified(fmt.Sprintf(format, args...), elsewhereFix)
}

// NotVerified begins the message of a finding for which a fact is missing.
const NotVerified = "not verified: "

const elsewhereFix = "Give its file to -f too; or, if these files are the whole cluster, add --complete."
