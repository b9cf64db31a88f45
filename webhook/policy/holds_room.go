package policy

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"warmpool.sh/webhook/cluster"
)

// MayHoldRoom tells of pods that may do nothing but hold a node, as far as the spec says: those with a PriorityClass, and
// with a pause image or a class that is called so.
func MayHoldRoom(spec *corev1.PodSpec) bool {
	return spec.PriorityClassName != "" && (pauses(spec) || isCalledPlaceholder(spec.PriorityClassName))
}

// HoldsRoom is MayHoldRoom of pods with a negative priority, by their class. Of a class that is not known the name tells,
// together with the pause image.
func HoldsRoom(spec *corev1.PodSpec, classes cluster.Facts[schedulingv1.PriorityClass]) bool {
	if !MayHoldRoom(spec) {
		return false
	}
	if class := classes.Get(spec.PriorityClassName); class != nil {
		return class.Value < 0
	}
	if spec.Priority != nil {
		return *spec.Priority < 0
	}
	return pauses(spec) && isCalledPlaceholder(spec.PriorityClassName)
}

func pauses(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool { return cluster.IsPauseImage(c.Image) })
}

func isCalledPlaceholder(class string) bool {
	return strings.Contains(class, "placeholder") || strings.Contains(class, "overprovision")
}
