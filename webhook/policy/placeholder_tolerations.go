package policy

import "warmpool.sh/webhook/config"

// Applies to: placeholder Deployments.
// Requires: a toleration without time limit for every NoSchedule and NoExecute taint of the pool.
// Why: one taint that is not tolerated and the placeholder stays Pending: no node is warm, and nothing says so.
var placeholderTolerations = &Rule{
	ID:       "placeholder-tolerations",
	Summary:  "Every NoSchedule and NoExecute taint of the pool is tolerated permanently.",
	Fix:      "Add the toleration to the pod template.",
	Subject:  PlaceholderDeployment,
	Fills:    "tolerations",
	Action:   config.Deny,
	Severity: SeverityError,
	check:    checkTolerations,
	mutate:   fillTolerations,
}
