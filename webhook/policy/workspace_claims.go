package policy

import (
	"fmt"

	"warmpool.sh/webhook/config"
)

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
	check: func(o *Object) []Finding {
		if o.Pool == nil || len(o.Spec.ResourceClaims) == 0 || o.Pool.Config.Autoscaler != config.Karpenter || o.Pool.Static {
			return nil
		}
		return []Finding{invalid(o.specPath("resourceClaims"), o.Spec.ResourceClaims[0].Name,
			fmt.Sprintf("Karpenter starts no node of pool %s for a pod with resourceClaims", o.Pool.Config.Name))}
	},
}
