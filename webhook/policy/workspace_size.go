package policy

import "warmpool.sh/webhook/config"

// Applies to: Workspace pods.
// Requires: room for the effective request on some shape of the pool's nodes.
// Why: else the pod stays Pending for ever, whatever the pool does.
var workspaceSize = &Rule{
	ID:       "workspace-size",
	Summary:  "The effective request is at most allocatable − DaemonSets on some node type of its pool; else it stays Pending for ever.",
	Fix:      "Ask for less, or add a larger instance type to the pool's NodePools.",
	Subject:  WorkspacePod,
	Action:   config.Warn,
	Severity: SeverityWarning,
	check: func(o *Object) []Finding {
		if o.Pool == nil || o.fit().Conflict {
			return nil
		}
		r := o.room()
		switch {
		case r.unknown != "":
			return []Finding{notVerified(o.specPath("containers"), "sizing: "+r.unknown).atMostAudit()}
		case len(r.fits) > 0:
			return nil
		case len(r.unseen) > 0:
			return []Finding{notVerified(o.specPath("containers"), unseenText(r)).atMostAudit()}
		default:
			return shortfallFindings(o, r)
		}
	},
}
