package policy

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"

	"warmpool.sh/webhook/config"
)

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
	check:    checkImageTag,
}

func checkImageTag(o *Object) []Finding {
	var findings []Finding
	for _, i := range o.prePullContainers() {
		c := &o.Spec.InitContainers[i]
		if tag, mutable := mutableTag(c.Image); mutable {
			findings = append(findings, invalid(o.specPath("initContainers").Index(i).Child("image"), c.Image,
				fmt.Sprintf("%s pulls tag %s, which can move: warm nodes may hold an older image", c.Name, tag)).withKey(c.Name))
		}
	}
	for _, c := range o.carriers() {
		if tag, mutable := mutableTag(c.image); mutable {
			findings = append(findings, invalid(c.path, c.image,
				fmt.Sprintf("%s has tag %s, which can move: warm nodes may hold an older image", c.what, tag)).withKey(c.what))
		}
	}
	return findings
}

// mutableTag is the tag of an image reference, and whether it can move: latest, latest-… or none, without a digest.
func mutableTag(image string) (tag string, mutable bool) {
	tag, digested := tagOf(image)
	return tag, !digested && (tag == "latest" || strings.HasPrefix(tag, "latest-"))
}

// tagOf is the tag of an image reference, latest where there is neither tag nor digest, as the API server reads it;
// empty for what is no image reference at all, which is for others to refuse.
func tagOf(image string) (tag string, digested bool) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return "", false
	}
	_, digested = named.(reference.Digested)
	if tagged, ok := reference.TagNameOnly(named).(reference.Tagged); ok {
		tag = tagged.Tag()
	}
	return tag, digested
}
