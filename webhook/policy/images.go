package policy

import (
	"slices"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/prepull"
)

// carrier is a part of a pod that brings an image to its node.
type carrier struct {
	// path is that of the image, name that of the part in messages.
	path        *field.Path
	name, image string
	// policyPath and policy are those of the pull policy.
	policyPath *field.Path
	policy     corev1.PullPolicy
}

func carrierOf(path *field.Path, name string, c *corev1.Container) carrier {
	return carrier{path.Child("image"), name, c.Image, path.Child("imagePullPolicy"), pullPolicy(c)}
}

// pullers are the init containers that pull Workspace images.
func (o *Object) pullers() []carrier {
	var found []carrier
	for _, i := range o.prePullContainers() {
		c := &o.Spec.InitContainers[i]
		found = append(found, carrierOf(o.specPath("initContainers").Index(i), c.Name, c))
	}
	return found
}

// prePullContainers are the indices of the init containers that pull Workspace images.
func (o *Object) prePullContainers() []int {
	var found []int
	for i := range o.Spec.InitContainers {
		if strings.HasPrefix(o.Spec.InitContainers[i].Name, prepull.Name) {
			found = append(found, i)
		}
	}
	return found
}

// elsewhere are the parts that may bring a Workspace image beside the pre-pull containers: other containers, and image
// volumes.
func (o *Object) elsewhere() []carrier {
	var found []carrier
	for path, c := range o.containers() {
		if !prepull.Owns(c.Name) {
			found = append(found, carrierOf(path, "container "+c.Name, c))
		}
	}
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
	return slices.DeleteFunc(o.elsewhere(), func(c carrier) bool { return !o.isTemplateImage(c.image) })
}

// PrePull is what the pool's templates say about the images of a placeholder, not to be changed. ok is false where they say
// nothing: no pool, no templates of the pool, or templates that could not be read.
func (o *Object) PrePull() (sources []prepull.Source, ok bool) {
	if o.Deployment == nil || o.Pool == nil || len(o.Pool.Config.Templates) == 0 || !o.e.facts.Templates.Known() {
		return nil, false
	}
	return o.e.sources[o.pool], true
}

// isTemplateImage tells whether a template of the pool asks for the image.
func (o *Object) isTemplateImage(image string) bool {
	sources, ok := o.PrePull()
	return ok && slices.ContainsFunc(sources, func(s prepull.Source) bool { return s.Image != "" && prepull.SameImage(image, s.Image) })
}

// pullPolicy is the container's pull policy, or the one that the API server gives where it is not set.
func pullPolicy(c *corev1.Container) corev1.PullPolicy {
	if c.ImagePullPolicy != "" {
		return c.ImagePullPolicy
	}
	if tag, _ := tagOf(c.Image); tag == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// MutableTag is the tag of an image reference, and whether it can move: latest, latest-… or none, without a digest.
func MutableTag(image string) (tag string, mutable bool) {
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

// registryOf is the registry of an image; empty for what is no image reference.
func registryOf(image string) string {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return ""
	}
	return reference.Domain(named)
}
