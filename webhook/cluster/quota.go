package cluster

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// PodCount is the resource of a ResourceQuota that counts all pods, those that have ended too.
const PodCount corev1.ResourceName = "count/pods"

// LimitsPods tells whether a resource of a ResourceQuota is counted of pods.
func LimitsPods(name corev1.ResourceName) bool {
	counted := []corev1.ResourceName{
		corev1.ResourcePods, PodCount, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
		corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceLimitsEphemeralStorage,
	}
	prefixes := []string{corev1.DefaultResourceRequestsPrefix, corev1.ResourceHugePagesPrefix}
	return slices.Contains(counted, name) || name != corev1.ResourceRequestsStorage && // of claims
		slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(string(name), prefix) })
}
