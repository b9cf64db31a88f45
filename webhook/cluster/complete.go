package cluster

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What an API server adds of its own, so that files say the same as the cluster that they are applied to.

func completeNamespace(namespace *corev1.Namespace) {
	// Namespace selectors go by this label; every API server sets it.
	metav1.SetMetaDataLabel(&namespace.ObjectMeta, corev1.LabelMetadataName, namespace.Name)
}

// priorityClass is one that every API server makes at start.
func priorityClass(name string, value int32) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
}

// completeNode offers all the capacity where no one says what the node reserves.
func completeNode(node *corev1.Node) {
	if len(node.Status.Allocatable) == 0 {
		node.Status.Allocatable = maps.Clone(node.Status.Capacity)
	}
}

// completeLimitRange gives containers defaults where there are bounds: the most is the default limit, the default limit or
// else the least the default request.
func completeLimitRange(ranges *corev1.LimitRange) {
	for i := range ranges.Spec.Limits {
		if item := &ranges.Spec.Limits[i]; item.Type == corev1.LimitTypeContainer {
			item.Default = merged(item.Max, item.Default)
			item.DefaultRequest = merged(item.Min, item.Default, item.DefaultRequest)
		}
	}
}

// merged takes each resource from the last list that has it.
func merged(lists ...corev1.ResourceList) corev1.ResourceList {
	all := corev1.ResourceList{}
	for _, list := range lists {
		maps.Copy(all, list)
	}
	return all
}
