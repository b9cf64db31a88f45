package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"warmpool.sh/webhook/cluster"
)

func TestIsLifecycleTaint(t *testing.T) {
	for key, want := range map[string]bool{
		"node.kubernetes.io/not-ready":                    true,
		"node.cloudprovider.kubernetes.io/uninitialized":  true,
		"node.cilium.io/agent-not-ready":                  true,
		"karpenter.sh/disrupted":                          true,
		"ebs.csi.aws.com/agent-not-ready":                 true,
		"sagemaker.amazonaws.com/node-health-status":      true,
		"ToBeDeletedByClusterAutoscaler":                  true,
		"DeletionCandidateOfClusterAutoscaler":            true,
		"":                                                false,
		"nvidia.com/gpu":                                  false,
		"dedicated":                                       false,
		"sagemaker.amazonaws.com/node-health-status-else": false,
		"node.kubernetes.io":                              false,
	} {
		assert.Equal(t, want, cluster.IsLifecycleTaint(key), key)
	}
}
