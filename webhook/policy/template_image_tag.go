package policy

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/prepull"
)

// Applies to: WorkspaceTemplates that pools list.
// Requires: a versioned tag or a digest for the default image.
// Why: behind a tag that moves, warm nodes hold an older image than the one the Workspace pulls, and nothing shows it.
var templateImageTag = &Rule{
	ID:        "template-image-tag",
	Summary:   "The default image is not on a mutable tag (latest, latest-*, none) without a digest.",
	Fix:       "Name a versioned tag or a digest in spec.defaultImage.",
	Subject:   WorkspaceTemplate,
	Action:    config.Audit,
	Severity:  SeverityWarning,
	AuditOnly: true,
	around: func(a *Audit) []Finding {
		return a.ofTemplates(func(template *cluster.WorkspaceTemplate) (f Finding, found bool) {
			path := field.NewPath("spec", "defaultImage")
			image := prepull.Resolve(template.DefaultImage, &a.config.Workspaces)
			if image.Problem != "" {
				return notVerified(path, fmt.Sprintf("%.100q %s", template.DefaultImage, image.Problem)), true
			}
			tag, mutable := mutableTag(image.Image)
			return invalid(path, template.DefaultImage, fmt.Sprintf("tag %s of %s can move: warm nodes may hold an older image than the one a Workspace gets", tag, image.Image)), mutable
		})
	},
}
