package generate

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodes are of some pools, under host names other than their own names.
func (r Rand) nodes() map[string]*corev1.Node {
	nodes := map[string]*corev1.Node{}
	for i, name := range []string{"n", "n0", "n1"} {
		nodes[name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"karpenter.sh/nodepool": pick(r, poolNames), corev1.LabelHostname: hostnames[i], corev1.LabelArchStable: "amd64",
			corev1.LabelInstanceTypeStable: pick(r, instanceTypes),
		}}}
	}
	return nodes
}

func (r Rand) affinity() *corev1.Affinity {
	affinity := &corev1.Affinity{}
	if r.chance(85) {
		affinity.NodeAffinity = &corev1.NodeAffinity{}
		if r.chance(85) {
			affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: several(r, 4, r.term)}
		}
		if r.chance(30) {
			affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: r.term()}}
		}
	}
	if r.chance(40) {
		affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": pick(r, []string{"ph", "other"})}},
		}}}
	}
	return affinity
}

func (r Rand) term() corev1.NodeSelectorTerm {
	term := corev1.NodeSelectorTerm{MatchExpressions: several(r, 3, r.requirement)}
	if r.chance(10) {
		term.MatchFields = []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{pick(r, []string{"n", "n0", "unknown"})}}}
	}
	return term
}

func (r Rand) requirement() corev1.NodeSelectorRequirement {
	requirement := corev1.NodeSelectorRequirement{Key: pick(r, labelKeys), Operator: pick(r, operators)}
	switch requirement.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		requirement.Values = several(r, 2, func() string { return pick(r, labelValues[requirement.Key]) })
		requirement.Values = append(requirement.Values, pick(r, labelValues[requirement.Key]))
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		requirement.Values = []string{pick(r, []string{"5", "9"})}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
	}
	return requirement
}
