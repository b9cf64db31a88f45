package policy

import (
	"strings"

	"warmpool.sh/webhook/config"
)

// Applies to: Workspace pods.
// Requires: a pool for the accelerators that the pod asks for.
// Why: without one the pod always starts cold, or not at all.
var workspaceNoPool = &Rule{
	ID:       "workspace-no-pool",
	Summary:  "Some pool offers the accelerators that the pod asks for.",
	Fix:      "Add the resource to the accelerators of a pool in the WarmPoolConfiguration, or ask for one that a pool has.",
	Subject:  WorkspacePod,
	Action:   config.Warn,
	Severity: SeverityWarning,
	check: func(o *Object) []Finding {
		if o.Pool != nil {
			return nil
		}
		f := invalid(o.specPath("containers"), strings.Join(o.Accelerators, ", "), o.Problem+": the pod starts cold, or not at all")
		if len(o.Accelerators) == 0 {
			f = f.withFix("Add a pool without accelerators to the WarmPoolConfiguration.")
		}
		return []Finding{f}
	},
}
