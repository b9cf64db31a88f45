package policy

import (
	"strings"

	"github.com/distribution/reference"

	"warmpool.sh/webhook/config"
)

// Applies to: placeholder Deployments, their pre-pull containers.
// Requires: a versioned tag or a digest.
// Why: behind a tag that moves, warm nodes hold an older image than the one the Workspace will pull.
var placeholderImageTag = &Rule{
	ID:       "placeholder-image-tag",
	Summary:  "Pre-pulled images are not on a mutable tag (latest, latest-*, none) without a digest.",
	Fix:      "Name a versioned tag or a digest in the WorkspaceTemplate and in the placeholder.",
	Subject:  PlaceholderDeployment,
	Action:   config.Warn,
	Severity: SeverityWarning,
	check:    checkImageTag,
}

func checkImageTag(o *Object) []Finding {
	var findings []Finding
	for _, i := range o.prePullContainers() {
		c := &o.Spec.InitContainers[i]
		if hasMutableTag(c.Image) {
			findings = append(findings, invalid(o.specPath("initContainers").Index(i).Child("image"), c.Image,
				"its tag can move: warm nodes may hold an older image than Workspaces pull").withKey(c.Name))
		}
	}
	return findings
}

// hasMutableTag tells whether an image reference has no digest and the tag latest, latest-… or none.
func hasMutableTag(image string) bool {
	tag := tagOf(image)
	return tag == "latest" || strings.HasPrefix(tag, "latest-")
}

// tagOf is the tag that the kubelet pulls: latest where there is none; empty behind a digest, and for what is no image
// reference at all, which is for others to refuse.
func tagOf(image string) string {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return ""
	}
	if _, ok := named.(reference.Digested); ok {
		return ""
	}
	if tagged, ok := reference.TagNameOnly(named).(reference.Tagged); ok {
		return tagged.Tag()
	}
	return ""
}
