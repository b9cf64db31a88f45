package policy

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

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
	check: func(o *Object) []Finding {
		if o.Pool != nil {
			return nil
		}
		if o.Unknown {
			return []Finding{notVerified(podSpecPath, o.Problem+": the pod is not placed")}
		}
		if o.Barred {
			return []Finding{invalid(field.NewPath("metadata", "namespace"), o.Namespace, o.Problem+": the pod is not placed, and starts cold or not at all").
				withFix("Ask for another pool by the Workspace's label " + placement.PoolLabel + ", or give the namespace what the pool's namespaceSelector asks for.")}
		}
		f := invalid(o.specPath("containers"), strings.Join(o.Accelerators, ", "), o.Problem+": the pod starts cold, or not at all")
		if len(o.Accelerators) == 0 {
			f = f.withFix("Add a pool without accelerators to the WarmPoolConfiguration.")
		}
		return []Finding{f}
	},
}
