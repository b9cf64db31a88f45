package policy

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/cluster"
)

// Applies to: WorkspaceTemplates that pools list.
// Requires: idle shutdown, switched on.
// Why: a Workspace that no one uses holds a node that could be warm for somebody else, until somebody stops it.
var templateIdleShutdown = &Rule{
	ID:       "template-idle-shutdown",
	Summary:  "Idle shutdown is on: an idle Workspace holds a node that could be warm for somebody else.",
	Fix:      "Set spec.defaultIdleShutdown with enabled: true, idleTimeoutInMinutes and how to detect idleness.",
	Subject:  WorkspaceTemplate,
	Severity: SeverityInfo,
	audit: func(a *Audit) {
		a.eachTemplate(func(about about, template *cluster.WorkspaceTemplate) {
			if !template.IdleShutdown {
				about.required(field.NewPath("spec", "defaultIdleShutdown", "enabled"), "idle shutdown is not switched on: an idle Workspace holds its node until somebody stops it")
			}
		})
	},
}
