package policy

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/prepull"
)

// Applies to: WorkspaceTemplates that pools list.
// Requires: a versioned tag or a digest for the default image.
// Why: behind a tag that moves, warm nodes hold an older image than the one the Workspace pulls, and nothing shows it.
var templateImageTag = &Rule{
	ID:       "template-image-tag",
	Summary:  "The default image is not on a mutable tag (latest, latest-*, none) without a digest.",
	Fix:      "Name a versioned tag or a digest in spec.defaultImage.",
	Subject:  WorkspaceTemplate,
	Severity: SeverityWarning,
	audit: func(a *Audit) {
		a.eachTemplate(func(about about, template *cluster.WorkspaceTemplate) {
			path := field.NewPath("spec", "defaultImage")
			image := prepull.Resolve(template.DefaultImage, &a.config.Workspaces)
			if image.Problem != "" {
				about.notVerified(path, "%.100q %s", template.DefaultImage, image.Problem)
			} else if tag, mutable := MutableTag(image.Image); mutable {
				about.invalid(path, template.DefaultImage, "tag %s of %s can move: warm nodes may hold an older image than the one a Workspace gets", tag, image.Image)
			}
		})
	},
}
