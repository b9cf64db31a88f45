package policy

import "warmpool.sh/webhook/config"

// Applies to: placeholder Deployments, their pre-pull containers, and other containers and image volumes with an image of
// the pool's templates.
// Requires: a versioned tag or a digest.
// Why: behind a tag that moves, warm nodes hold an older image than the one the Workspace will pull.
var placeholderImageTag = &Rule{
	ID:       "placeholder-image-tag",
	Summary:  "Pre-pulled images are not on a mutable tag (latest, latest-*, none) without a digest.",
	Fix:      "Name a versioned tag or a digest in the WorkspaceTemplate and in the placeholder.",
	Subject:  PlaceholderDeployment,
	Action:   config.Warn,
	Severity: SeverityWarning,
	check: func(o *Object) {
		for _, c := range append(o.pullers(), o.carriers()...) {
			if tag, mutable := MutableTag(c.image); mutable {
				o.invalid(c.path, c.image, "%s has tag %s, which can move: warm nodes may hold an older image", c.name, tag).withKey(c.name)
			}
		}
	},
}
