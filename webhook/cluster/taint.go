package cluster

import (
	"slices"
	"strings"
)

var (
	lifecyclePrefixes = []string{"node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "node.cilium.io/", "karpenter.sh/"}
	lifecycleKeys     = []string{
		"sagemaker.amazonaws.com/node-health-status",
		"ToBeDeletedByClusterAutoscaler",
		"DeletionCandidateOfClusterAutoscaler",
	}
)

// IsLifecycleTaint tells the keys of taints by which Kubernetes, Karpenter, autoscalers, network plugins and HyperPod mark
// nodes that are not fit for pods, for now or permanently. They are tolerated only where the configuration lists them.
func IsLifecycleTaint(key string) bool {
	return slices.Contains(lifecycleKeys, key) ||
		slices.ContainsFunc(lifecyclePrefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) ||
		strings.HasSuffix(key, "/agent-not-ready")
}
