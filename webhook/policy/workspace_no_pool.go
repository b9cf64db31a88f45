package policy

import (
	"strings"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Applies to: Workspace pods.
// Requires: a pool for the accelerators that the pod asks for, that its namespace may use.
// Why: without one the pod always starts cold, or not at all.
var workspaceNoPool = &Rule{
	ID:       "workspace-no-pool",
	Summary:  "Some pool offers the accelerators that the pod asks for, and its namespace may use it.",
	Fix:      "Add the resource to the accelerators of a pool in the WarmPoolConfiguration, or ask for one that a pool has.",
	Subject:  WorkspacePod,
	Action:   config.Warn,
	Severity: SeverityWarning,
	check: func(o *Object) {
		switch {
		case o.Pool != nil:
		case o.Unknown:
			o.notVerified(podSpecPath, "%s: the pod is not placed", o.Problem)
		case o.Barred:
			o.invalid(namespacePath, o.Namespace, "%s: the pod is not placed, and starts cold or not at all", o.Problem).
				withFix("Ask for another pool by the Workspace's label " + placement.PoolLabel + ", or give the namespace what the pool's namespaceSelector asks for.")
		default:
			f := o.invalid(o.specPath("containers"), strings.Join(o.Accelerators, ", "), "%s: the pod starts cold, or not at all", o.Problem)
			if len(o.Accelerators) == 0 {
				f.withFix("Add a pool without accelerators to the WarmPoolConfiguration.")
			}
		}
	},
}
