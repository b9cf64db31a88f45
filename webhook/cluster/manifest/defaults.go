package manifest

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What an API server adds of its own, so that files say the same as the cluster that they are applied to.

func namespace(o Object) (*corev1.Namespace, error) {
	ns, err := Typed[corev1.Namespace](o)
	if err != nil {
		return nil, err
	}
	// Namespace selectors go by this label; every API server sets it.
	metav1.SetMetaDataLabel(&ns.ObjectMeta, corev1.LabelMetadataName, ns.Name)
	return ns, nil
}

// systemPriorityClasses are those that every API server makes at start, with its values.
func systemPriorityClasses() map[string]*schedulingv1.PriorityClass {
	classes := map[string]*schedulingv1.PriorityClass{}
	for name, value := range map[string]int32{"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000} {
		classes[name] = &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
	}
	return classes
}

// node has all its capacity to offer where no one says what it reserves. Its images are left out: they are most of its
// text, and nothing goes by them.
func node(o Object) (*corev1.Node, error) {
	if status, ok := o.Object["status"].(map[string]any); ok {
		status = maps.Clone(status)
		delete(status, "images")
		content := maps.Clone(o.Object)
		content["status"] = status
		o.Unstructured = &unstructured.Unstructured{Object: content}
	}
	n, err := Typed[corev1.Node](o)
	if err != nil {
		return nil, err
	}
	if len(n.Status.Allocatable) == 0 {
		n.Status.Allocatable = maps.Clone(n.Status.Capacity)
	}
	return n, nil
}

// limitRange has defaults for containers where it has bounds: the most is the default limit, the default limit or else
// the least the default request.
func limitRange(o Object) (*corev1.LimitRange, error) {
	ranges, err := Typed[corev1.LimitRange](o)
	if err != nil {
		return nil, err
	}
	for i := range ranges.Spec.Limits {
		if item := &ranges.Spec.Limits[i]; item.Type == corev1.LimitTypeContainer {
			item.Default = merged(item.Max, item.Default)
			item.DefaultRequest = merged(item.Min, item.Default, item.DefaultRequest)
		}
	}
	return ranges, nil
}

// merged takes each resource from the last list that has it.
func merged(lists ...corev1.ResourceList) corev1.ResourceList {
	all := corev1.ResourceList{}
	for _, list := range lists {
		maps.Copy(all, list)
	}
	return all
}
