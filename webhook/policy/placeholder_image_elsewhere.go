package policy

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/prepull"
)

// carrier is a part of a pod that brings an image to its node.
type carrier struct {
	// path is that of the image, what names the part in messages.
	path        *field.Path
	what, image string
	// policyPath and policy are those of the pull policy.
	policyPath *field.Path
	policy     corev1.PullPolicy
}

// elsewhere are the parts that may bring a Workspace image beside the pre-pull containers: other containers, and image
// volumes.
func (o *Object) elsewhere() []carrier {
	var found []carrier
	add := func(list string, containers []corev1.Container) {
		for i := range containers {
			c := &containers[i]
			if !prepull.Owns(c.Name) {
				path := o.specPath(list).Index(i)
				found = append(found, carrier{path.Child("image"), "container " + c.Name, c.Image, path.Child("imagePullPolicy"), pullPolicy(c)})
			}
		}
	}
	add("initContainers", o.Spec.InitContainers)
	add("containers", o.Spec.Containers)
	for i := range o.Spec.Volumes {
		if v := &o.Spec.Volumes[i]; v.Image != nil {
			path := o.specPath("volumes").Index(i).Child("image")
			policy := pullPolicy(&corev1.Container{Image: v.Image.Reference, ImagePullPolicy: v.Image.PullPolicy})
			found = append(found, carrier{path.Child("reference"), "image volume " + v.Name, v.Image.Reference, path.Child("pullPolicy"), policy})
		}
	}
	return found
}

// carriers are those of elsewhere that have an image of the pool's templates.
func (o *Object) carriers() []carrier {
	var found []carrier
	for _, c := range o.elsewhere() {
		if o.isTemplateImage(c.image) {
			found = append(found, c)
		}
	}
	return found
}

// isTemplateImage tells that a template of the pool asks for the image.
func (o *Object) isTemplateImage(image string) bool {
	sources, ok := o.PrePull()
	return ok && slices.ContainsFunc(sources, func(s prepull.Source) bool { return s.Image != "" && prepull.SameImage(image, s.Image) })
}

// elsewhereFindings are those about a placeholder without a container that warmpool keeps current: about each image that
// nothing else of it brings, in the version that the templates have.
func elsewhereFindings(o *Object, images []string) []Finding {
	present := prepull.Present(o.Spec)
	if len(present) == 0 {
		return []Finding{invalid(o.specPath("initContainers"), "", "nothing is pre-pulled: no init container is called "+prepull.Name).withKey("absent").
			withFix("Add an init container " + prepull.Name + " with a command that ends, as in the shipped manifests; warmpool adds none by itself.")}
	}
	var findings []Finding
	for _, image := range prepull.Missing(images, present) {
		findings = append(findings, missingElsewhere(o, image))
	}
	return findings
}

func missingElsewhere(o *Object, image string) Finding {
	fix := fmt.Sprintf("an init container %s with a command that ends, as in the shipped manifests: warmpool keeps only that one current.", prepull.Name)
	for _, c := range o.elsewhere() {
		if prepull.SameRepository(c.image, image) && !o.isTemplateImage(c.image) {
			return invalid(c.path, c.image, fmt.Sprintf("%s does not have %s, which a template of the pool has", c.what, image)).withKey("absent").
				withFix(fmt.Sprintf("Name %s there, or add %s", image, fix))
		}
	}
	return invalid(o.specPath("initContainers"), "", fmt.Sprintf(
		"%s is not pre-pulled: no init container is called %s, and no other container and no image volume has it", image, prepull.Name)).
		withKey("absent").withFix("Add " + fix)
}
