package policy

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/placement"
)

// asked is what is asked for, and in which part: the request, else the limit, which counts as one.
func asked(r *corev1.ResourceRequirements, name corev1.ResourceName) (part string, quantity resource.Quantity, ok bool) {
	if quantity, ok := r.Requests[name]; ok {
		return "requests", quantity, true
	}
	quantity, ok = r.Limits[name]
	return "limits", quantity, ok
}

// requestPath is the field that asks for most of the resource: the pod's own, else a container's.
func requestPath(o *Object, name corev1.ResourceName) *field.Path {
	if name == corev1.ResourcePods {
		return o.specPath()
	}
	if resources := o.Spec.Resources; resources != nil {
		if list, _, ok := asked(resources, name); ok {
			return o.specPath("resources", list).Key(string(name))
		}
	}
	var most resource.Quantity
	path := o.specPath("containers")
	for container, c := range o.containers() {
		if part, quantity, ok := asked(&c.Resources, name); ok && quantity.Cmp(most) > 0 {
			most, path = quantity, container.Child("resources", part).Key(string(name))
		}
	}
	return path
}

// extendedResources are the names of the extended resources in requests and limits, sorted.
func extendedResources(r *corev1.ResourceRequirements) []corev1.ResourceName {
	all := slices.AppendSeq(sortedNames(r.Requests), maps.Keys(r.Limits))
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(name corev1.ResourceName) bool { return !placement.IsExtendedResource(name) })
}

// cannotBeOvercommitted tells the resources whose limit is the request.
func cannotBeOvercommitted(name corev1.ResourceName) bool {
	return placement.IsExtendedResource(name) || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func has(list corev1.ResourceList, name corev1.ResourceName) bool {
	_, ok := list[name]
	return ok
}

func sortedNames(list corev1.ResourceList) []corev1.ResourceName {
	return slices.Sorted(maps.Keys(list))
}
