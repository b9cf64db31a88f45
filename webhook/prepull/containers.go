package prepull

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Name is the name of the first init container that pulls a Workspace image. The further ones are Name-2, Name-3 and so
// on; no other container is ever touched.
const Name = "pull-workspace-image"

// ContainerName is the name of the container at a place, from 0.
func ContainerName(place int) string {
	if place == 0 {
		return Name
	}
	return Name + "-" + strconv.Itoa(place+1)
}

// place is the inverse of ContainerName; ok is false for the names of other containers.
func place(name string) (place int, ok bool) {
	if name == Name {
		return 0, true
	}
	number, ok := strings.CutPrefix(name, Name+"-")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(number)
	return n - 1, err == nil && n >= 2 && strconv.Itoa(n) == number
}

// Owns tells whether a container of this name is one of the pre-pull containers.
func Owns(name string) bool {
	_, ok := place(name)
	return ok
}

// Status is what the kubelet says of the pod's container or init container of this name; nil while it says nothing.
func Status(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if statuses[i].Name == name {
				return &statuses[i]
			}
		}
	}
	return nil
}

// owned are the indices of the pre-pull containers in the order of their places.
func owned(init []corev1.Container) []int {
	var found []int
	for i := range init {
		if _, ok := place(init[i].Name); ok {
			found = append(found, i)
		}
	}
	slices.SortFunc(found, func(a, b int) int {
		x, _ := place(init[a].Name)
		y, _ := place(init[b].Name)
		return cmp.Compare(x, y)
	})
	return found
}

// Pulled are the images that init containers pull now, in the order of their places.
func Pulled(init []corev1.Container) []string {
	var images []string
	for _, i := range owned(init) {
		images = append(images, init[i].Image)
	}
	return images
}

// Same tells whether two lists of init containers have the same pre-pull containers, by names and images.
func Same(a, b []corev1.Container) bool {
	return slices.EqualFunc(owned(a), owned(b), func(i, j int) bool { return a[i].Name == b[j].Name && a[i].Image == b[j].Image })
}

// Change is one thing to do to the init containers.
type Change struct {
	// Index of the container that gets another image or goes; that of a new one is beyond the end.
	Index int
	// Container as it is to be; only its Name when it goes.
	Container corev1.Container
	// Gone tells that it is no longer wanted, Added that it is new: a copy of the first with a name and image of its own.
	Gone, Added bool
}

// HasFirst tells whether there is a container called Name, which the others are copies of. Without it there is nothing
// to go by, and nothing is changed.
func HasFirst(init []corev1.Container) bool {
	return slices.ContainsFunc(init, func(c corev1.Container) bool { return c.Name == Name })
}

// Changes make init containers pull exactly the images, the first in the container called Name: other images in the
// order of the containers, new containers at the end, then the containers that go, last first. They are empty when
// nothing is to change, when no image is wanted, and without a first container.
func Changes(init []corev1.Container, images []string) []Change {
	first := slices.IndexFunc(init, func(c corev1.Container) bool { return c.Name == Name })
	if first < 0 || len(images) == 0 {
		return nil
	}
	var set, added, gone []Change
	have := make([]bool, len(images))
	for i := range init {
		at, ok := place(init[i].Name)
		switch {
		case !ok:
		case at >= len(images):
			gone = append(gone, Change{Index: i, Container: corev1.Container{Name: init[i].Name}, Gone: true})
		case init[i].Image != images[at]:
			container := init[i]
			container.Image = images[at]
			set = append(set, Change{Index: i, Container: container})
		}
		if ok && at < len(images) {
			have[at] = true
		}
	}
	for at := range images {
		if !have[at] {
			container := *init[first].DeepCopy()
			container.Name, container.Image = ContainerName(at), images[at]
			added = append(added, Change{Index: len(init) + len(added), Container: container, Added: true})
		}
	}
	slices.Reverse(gone)
	return slices.Concat(set, added, gone)
}

// Apply gives the init containers after the changes; the ones handed in stay as they are.
func Apply(init []corev1.Container, changes []Change) []corev1.Container {
	result := slices.Clone(init)
	for _, c := range changes {
		switch {
		case c.Gone:
			result = slices.Delete(result, c.Index, c.Index+1)
		case c.Added:
			result = append(result, c.Container)
		default:
			result[c.Index] = c.Container
		}
	}
	return result
}
