package prepull

import (
	"slices"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
)

// Present are the images that a node has once a pod runs there, each once: those of the pre-pull containers in the order
// of their places, then those of the other containers and of image volumes. Pause images are left out: no Workspace
// starts from one.
func Present(spec *corev1.PodSpec) []string {
	images := Pulled(spec.InitContainers)
	add := func(image string) {
		if image != "" && !cluster.IsPauseImage(image) {
			images = append(images, image)
		}
	}
	for i := range spec.InitContainers {
		add(spec.InitContainers[i].Image)
	}
	for i := range spec.Containers {
		add(spec.Containers[i].Image)
	}
	for i := range spec.Volumes {
		if source := spec.Volumes[i].Image; source != nil {
			add(source.Reference)
		}
	}
	var distinct []string
	for _, image := range images {
		if !slices.Contains(distinct, image) {
			distinct = append(distinct, image)
		}
	}
	return distinct
}

// Missing are those of the images that are not among the ones that are present.
func Missing(images, present []string) []string {
	var missing []string
	for _, image := range images {
		if !slices.ContainsFunc(present, func(p string) bool { return SameImage(p, image) }) {
			missing = append(missing, image)
		}
	}
	return missing
}

// SameImage tells whether two references name one image, however long they are written.
func SameImage(a, b string) bool {
	if a == b {
		return true
	}
	x, err := reference.ParseNormalizedNamed(a)
	if err != nil {
		return false
	}
	y, err := reference.ParseNormalizedNamed(b)
	return err == nil && reference.TagNameOnly(x).String() == reference.TagNameOnly(y).String()
}

// SameRepository tells whether two references name images of one repository, such as two versions.
func SameRepository(a, b string) bool {
	x, err := reference.ParseNormalizedNamed(a)
	if err != nil {
		return false
	}
	y, err := reference.ParseNormalizedNamed(b)
	return err == nil && x.Name() == y.Name()
}
