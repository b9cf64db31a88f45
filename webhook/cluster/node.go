package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Readiness is what a node's condition Ready says; empty where it has none, as in a manifest.
func Readiness(node *corev1.Node) corev1.ConditionStatus {
	i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if i < 0 {
		return ""
	}
	return node.Status.Conditions[i].Status
}

// MayBeReady tells whether a node is ready, or nothing says that it is not.
func MayBeReady(node *corev1.Node) bool {
	readiness := Readiness(node)
	return readiness == "" || readiness == corev1.ConditionTrue
}

// RequiredNodes is the required node affinity of a pod; nil: it has none.
func RequiredNodes(spec *corev1.PodSpec) *corev1.NodeSelector {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return nil
	}
	return spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}
