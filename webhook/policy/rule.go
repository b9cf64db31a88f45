package policy

import (
	"cmp"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Severity is how bad a finding is in an audit.
type Severity string

// The severities, worst first.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityInfo    Severity = "info"
)

// Subject is the kind of object that a rule judges.
type Subject string

// The subjects of rules. All but the first two are judged by audits only.
const (
	PlaceholderDeployment Subject = "placeholder Deployment"
	WorkspacePod          Subject = "Workspace pod"
	PriorityClass         Subject = "PriorityClass"
	NodePool              Subject = "NodePool"
	Node                  Subject = "node"
	ProportionalScaler    Subject = "CPA"
	WorkspaceTemplate     Subject = "WorkspaceTemplate"
	WebhookConfiguration  Subject = "webhook configuration"
	WarmPool              Subject = "pool"
	Workload              Subject = "workload"
	Server                Subject = "warmpool's Deployment"
)

// Rule is one thing that must hold, with what to do when it does not.
type Rule struct {
	// ID is stable and is printed with every finding.
	ID string
	// Summary is one sentence that says what must hold.
	Summary string
	// Fix says in the imperative what to do about a finding; it ends with a full stop.
	Fix string
	// Subject is what the rule judges.
	Subject Subject
	// Fills tells that Mutate sets what is absent, in words; empty without Mutate.
	Fills string
	// Action is what becomes of findings at admission unless the configuration says otherwise.
	Action config.Action
	// Severity is what an audit reports.
	Severity Severity
	// AuditOnly tells that the rule says nothing at admission.
	AuditOnly bool

	// around judges a whole cluster, most often instead of check. Its findings name their objects.
	around func(*Audit) []Finding
	// check returns the findings; it must not change the object.
	check func(*Object) []Finding
	// mutate fills what is absent or still the API server's default, in the object and in the patch alike. It replaces
	// parts of the object and never writes through its pointers, slices and maps.
	mutate func(*Object, *placement.Patch)
}

// Finding is one violation of a rule.
type Finding struct {
	// Rule that was violated.
	Rule *Rule
	// Object that violates it, and its pool; set by audits.
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
	// key tells findings of one rule apart where the field path does not, or where the path is an index that moves.
	key string
	// short, where set, is what no node has room for: an update is denied only for asking for more of it, whichever node
	// comes nearest.
	short *short
	// amount is how much is wrong, where that can grow; an update is denied when it did.
	amount int64
}

// of completes the finding with what its rule says where it says nothing itself.
func (f Finding) of(rule *Rule, action config.Action) Finding {
	f.Rule, f.Action = rule, action
	if f.atMost != "" {
		f.Action = mildest(action, f.atMost)
	}
	f.Severity = cmp.Or(f.Severity, rule.Severity)
	f.Fix = cmp.Or(f.Fix, rule.Fix)
	return f
}

// Ref names an object.
type Ref struct {
	Kind, Namespace, Name string
	// Definition is which of several definitions in files is meant, from 1; 0: the first, or the only one.
	Definition int
}

// about says which object of which pool the finding is about.
func (f Finding) about(kind, namespace, name, pool string) Finding {
	f.Object, f.Pool = Ref{Kind: kind, Namespace: namespace, Name: name}, pool
	return f
}

// in says which definition of the object the finding is about.
func (f Finding) in(definition int) Finding {
	f.Object.Definition = definition
	return f
}

// identity of a violation across an update.
func (f *Finding) identity() string {
	key := f.key
	if key == "" {
		key = f.Error.Field
	}
	return f.Rule.ID + " " + key
}

// atMostWarn marks findings that are no reason to deny.
func (f Finding) atMostWarn() Finding {
	f.atMost = config.Warn
	return f
}

// atMostAudit marks findings that are no reason to tell whoever applies the object.
func (f Finding) atMostAudit() Finding {
	f.atMost = config.Audit
	return f
}

// milder lowers the finding's severity.
func (f Finding) milder(s Severity) Finding {
	f.Severity = s
	return f
}

// withKey names the violation for comparisons across an update.
func (f Finding) withKey(key string) Finding {
	f.key = key
	return f
}

// withFix replaces the rule's fix by a more exact one.
func (f Finding) withFix(fix string) Finding {
	f.Fix = fix
	return f
}

func invalid(path *field.Path, value any, message string) Finding {
	return Finding{Error: field.Invalid(path, value, message)}
}

func required(path *field.Path, message string) Finding {
	return Finding{Error: field.Required(path, message)}
}

// NotVerified begins the message of a finding for which a fact is missing.
const NotVerified = "not verified: "

// notVerified is the finding of a rule that lacks a fact: said aloud, never a denial.
func notVerified(path *field.Path, why string) Finding {
	return Finding{
		Error: field.Forbidden(path, NotVerified+why),
		Fix:   "Check it by hand, or make the missing facts readable.",
		key:   "not verified",
	}.atMostWarn().milder(SeverityInfo)
}

// orElsewhere is a finding that follows from the absence of an object. Where only a part of the cluster is known the object may
// be elsewhere, and all that can be said is why it matters.
func orElsewhere[T any](f Finding, facts cluster.Facts[T], why string) Finding {
	if facts.Whole() {
		return f
	}
	path := f.Error.Field
	f.Error = field.Forbidden(nil, "not verified: "+why)
	f.Error.Field = path
	f.Fix, f.key = elsewhereFix, "not verified"
	return f.atMostWarn().milder(SeverityInfo)
}

const elsewhereFix = "Give its file to -f too; or, if these files are the whole cluster, add --complete."

var strictness = map[config.Action]int{config.Off: 0, config.Audit: 1, config.Warn: 2, config.Deny: 3}

func mildest(a, b config.Action) config.Action {
	if strictness[a] <= strictness[b] {
		return a
	}
	return b
}
