package policy

import "warmpool.sh/webhook/config"

// Applies to: Workspace pods.
// Requires: no resourceClaims in a pool to which Karpenter adds nodes on demand.
// Why: Karpenter starts no node for a pod with claims (Dynamic Resource Allocation); only static NodePools can serve it.
var workspaceClaims = &Rule{
	ID:       "workspace-claims",
	Summary:  "Uses no resourceClaims (Dynamic Resource Allocation) in a pool that Karpenter provisions on demand: it starts no node for them.",
	Fix:      "Ask for the device as an extended resource, or give the pool a static NodePool (spec.replicas).",
	Subject:  WorkspacePod,
	Action:   config.Warn,
	Severity: SeverityWarning,
	check: func(o *Object) {
		if o.Pool != nil && len(o.Spec.ResourceClaims) > 0 && o.Pool.Config.Autoscaler == config.Karpenter && !o.Pool.Static {
			o.invalid(o.specPath("resourceClaims"), o.Spec.ResourceClaims[0].Name, "Karpenter starts no node of pool %s for a pod with resourceClaims", o.pool)
		}
	},
}
