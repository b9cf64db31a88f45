package policy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	podresource "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
)

// counts tells whether the scopes of the quota take a pod in.
func (q *podQuota) counts(spec *corev1.PodSpec, pod *corev1.Pod) bool {
	var scopes []corev1.ScopedResourceSelectorRequirement
	for _, name := range q.quota.Spec.Scopes {
		scopes = append(scopes, corev1.ScopedResourceSelectorRequirement{ScopeName: name, Operator: corev1.ScopeSelectorOpExists})
	}
	if selector := q.quota.Spec.ScopeSelector; selector != nil {
		scopes = append(scopes, selector.MatchExpressions...)
	}
	return !slices.ContainsFunc(scopes, func(s corev1.ScopedResourceSelectorRequirement) bool { return !q.inScope(s, spec, pod) })
}

func (q *podQuota) inScope(s corev1.ScopedResourceSelectorRequirement, spec *corev1.PodSpec, pod *corev1.Pod) bool {
	switch s.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return spec.ActiveDeadlineSeconds != nil
	case corev1.ResourceQuotaScopeNotTerminating:
		return spec.ActiveDeadlineSeconds == nil
	case corev1.ResourceQuotaScopeBestEffort:
		return isBestEffort(pod)
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !isBestEffort(pod)
	case corev1.ResourceQuotaScopePriorityClass:
		name := spec.PriorityClassName
		if class := q.e.defaultPriorityClass(); name == "" && class != nil {
			name = class.Name
		}
		switch s.Operator {
		case corev1.ScopeSelectorOpIn:
			return slices.Contains(s.Values, name)
		case corev1.ScopeSelectorOpNotIn:
			return !slices.Contains(s.Values, name)
		default:
			return (name != "") == (s.Operator == corev1.ScopeSelectorOpExists)
		}
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return asksOtherNamespaces(spec.Affinity)
	default: // of other objects
		return false
	}
}

// isBestEffort tells whether a pod asks for neither cpu nor memory.
func isBestEffort(pod *corev1.Pod) bool {
	asks := func(r *corev1.ResourceRequirements) bool {
		return slices.ContainsFunc([]corev1.ResourceList{r.Requests, r.Limits}, func(list corev1.ResourceList) bool {
			cpu, memory := list[corev1.ResourceCPU], list[corev1.ResourceMemory]
			return !cpu.IsZero() || !memory.IsZero()
		})
	}
	if podresource.IsPodLevelResourcesSet(pod) {
		return !asks(pod.Spec.Resources)
	}
	return !slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c corev1.Container) bool { return asks(&c.Resources) })
}

// asksOtherNamespaces tells whether a term is about pods of other namespaces, or says so of its own.
func asksOtherNamespaces(affinity *corev1.Affinity) bool {
	if affinity == nil {
		return false
	}
	pods, anti := ptr.Deref(affinity.PodAffinity, corev1.PodAffinity{}), ptr.Deref(affinity.PodAntiAffinity, corev1.PodAntiAffinity{})
	terms := slices.Concat(pods.RequiredDuringSchedulingIgnoredDuringExecution, anti.RequiredDuringSchedulingIgnoredDuringExecution)
	for _, preferred := range slices.Concat(pods.PreferredDuringSchedulingIgnoredDuringExecution, anti.PreferredDuringSchedulingIgnoredDuringExecution) {
		terms = append(terms, preferred.PodAffinityTerm)
	}
	return slices.ContainsFunc(terms, func(term corev1.PodAffinityTerm) bool {
		return len(term.Namespaces) > 0 || term.NamespaceSelector != nil
	})
}
