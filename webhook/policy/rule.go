package policy

import (
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
	// Fills says what Mutate sets where it is absent, in words; empty without Mutate.
	Fills string
	// Action is what becomes of findings at admission unless the configuration says otherwise. A rule without one is for
	// audits only: the table sets Audit and AuditOnly.
	Action    config.Action
	AuditOnly bool
	// Severity is what an audit reports.
	Severity Severity

	// check judges one object and must not change it.
	check func(*Object)
	// mutate fills what is absent or still the API server's default, in the object and in the patch alike. It replaces
	// parts of the object and never writes through its pointers, slices and maps.
	mutate func(*Object, *placement.Patch)
	// audit judges a whole cluster, in most rules instead of check.
	audit func(*Audit)
}
