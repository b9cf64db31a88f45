package policy

import (
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Applies to: Workspace pods.
// Requires: required node affinity (or a nodeSelector) that keeps the pod in its pool.
// Why: elsewhere it waits for a cold node while a warm one stands by. Preferred affinity is dropped when it does not suit.
var workspacePoolAffinity = &Rule{
	ID:       "workspace-pool-affinity",
	Summary:  "Required node affinity keeps the pod in its pool.",
	Fix:      "Let the webhook place the pod: delete it, and its controller makes a new one.",
	Subject:  WorkspacePod,
	Fills:    "required node affinity",
	Action:   config.Audit,
	Severity: SeverityError,
	check: func(o *Object) {
		if o.Pool == nil {
			return
		}
		if fit := o.fit(); !fit.Conflict && !fit.Pinned && (fit.Unrestricted || len(fit.Loose) > 0) {
			o.required(o.specPath(requiredNodesPath...), "the pod may start outside pool %s, on a cold node: needs %s in every term (preferred terms do not count)", o.pool, poolRequirement(o.Pool))
		}
	},
	mutate: func(o *Object, patch *placement.Patch) {
		if o.Pool != nil && !isBound(o) {
			o.Pool.Require(o.Spec, o.specPointer(), patch)
		}
	},
}
