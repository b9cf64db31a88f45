package policy

import "warmpool.sh/webhook/config"

// Applies to: Workspace pods.
// Requires: a toleration without time limit for every NoSchedule and NoExecute taint of the pool.
// Why: one taint that is not tolerated keeps the pod off every warm node.
var workspaceTolerations = &Rule{
	ID:       "workspace-tolerations",
	Summary:  "Every NoSchedule and NoExecute taint of the pool is tolerated permanently.",
	Fix:      "Let the webhook place the pod: delete it, and its controller makes a new one.",
	Subject:  WorkspacePod,
	Fills:    "tolerations",
	Action:   config.Audit,
	Severity: SeverityError,
	check:    checkTolerations,
	mutate:   fillTolerations,
}
