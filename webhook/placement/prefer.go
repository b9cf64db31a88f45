package placement

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/prepull"
)

const preferredTerms = "preferredDuringSchedulingIgnoredDuringExecution"

// WarmFirst is the preferred pod affinity of a pod that runs the image: to nodes where a placeholder of the namespace has
// pulled it. It may not be changed afterwards.
func WarmFirst(namespace, image string) *corev1.WeightedPodAffinityTerm {
	return &corev1.WeightedPodAffinityTerm{
		Weight: 100, // the most there is: the spreading over empty nodes that it must outweigh counts several times
		PodAffinityTerm: corev1.PodAffinityTerm{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{prepull.ImageLabel(image): "true"}},
			Namespaces:    []string{namespace},
			TopologyKey:   corev1.LabelHostname,
		},
	}
}

// MindsPlaceholders tells whether a preferred term of the pod's affinity or anti-affinity to pods is about placeholders
// already: it lists their namespace, or selects by a label that says which image is pulled.
func MindsPlaceholders(spec *corev1.PodSpec, namespace string) bool {
	if spec.Affinity == nil {
		return false
	}
	about := func(w corev1.WeightedPodAffinityTerm) bool {
		return slices.Contains(w.PodAffinityTerm.Namespaces, namespace) || selectsImage(w.PodAffinityTerm.LabelSelector)
	}
	to, from := spec.Affinity.PodAffinity, spec.Affinity.PodAntiAffinity
	return to != nil && slices.ContainsFunc(to.PreferredDuringSchedulingIgnoredDuringExecution, about) ||
		from != nil && slices.ContainsFunc(from.PreferredDuringSchedulingIgnoredDuringExecution, about)
}

func selectsImage(selector *metav1.LabelSelector) bool {
	if selector == nil {
		return false
	}
	for key := range selector.MatchLabels {
		if strings.HasPrefix(key, prepull.ImageLabelPrefix) {
			return true
		}
	}
	return slices.ContainsFunc(selector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
		return strings.HasPrefix(r.Key, prepull.ImageLabelPrefix)
	})
}

// Prefer appends a preferred term to the pod's affinity to pods; what is there stays as it is. spec is replaced part by
// part, never written through; pointer is the JSON pointer of spec.
func Prefer(spec *corev1.PodSpec, pointer string, term *corev1.WeightedPodAffinityTerm, patch *Patch) {
	terms := []corev1.WeightedPodAffinityTerm{*term}
	var affinity corev1.Affinity
	var podAffinity corev1.PodAffinity
	switch {
	case spec.Affinity == nil:
		patch.Add(pointer+"/affinity", map[string]any{"podAffinity": map[string]any{preferredTerms: terms}})
	case spec.Affinity.PodAffinity == nil:
		affinity = *spec.Affinity
		patch.Add(pointer+"/affinity/podAffinity", map[string]any{preferredTerms: terms})
	default:
		affinity, podAffinity = *spec.Affinity, *spec.Affinity.PodAffinity
		at := pointer + "/affinity/podAffinity/" + preferredTerms
		if len(podAffinity.PreferredDuringSchedulingIgnoredDuringExecution) == 0 {
			patch.Add(at, terms)
		} else {
			patch.Add(at+"/-", term)
		}
	}
	podAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(slices.Clip(podAffinity.PreferredDuringSchedulingIgnoredDuringExecution), terms...)
	affinity.PodAffinity = &podAffinity
	spec.Affinity = &affinity
}
