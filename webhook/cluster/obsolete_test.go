package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"warmpool.sh/webhook/cluster"
)

func TestObsoleteOf(t *testing.T) {
	for text, want := range map[string]string{
		"karpenter.sh/v1 NodePool":                    "",
		"karpenter.sh/v2alpha1 NodePool":              "",
		"karpenter.sh/v1beta1 NodePool":               "karpenter.sh/v1 NodePool",
		"karpenter.sh/v1beta1 NodeClaim":              "karpenter.sh/v1 NodeClaim",
		"karpenter.sh/v1alpha5 Provisioner":           "karpenter.sh/v1 NodePool",
		"karpenter.sh/v1 Provisioner":                 "karpenter.sh/v1 NodePool",
		"karpenter.sh/v1alpha1 NodeOverlay":           "",
		"karpenter.k8s.aws/v1alpha1 AWSNodeTemplate":  "karpenter.k8s.aws/v1 EC2NodeClass",
		"karpenter.azure.com/v1beta1 AKSNodeClass":    "",
		"apps/v1beta1 Deployment":                     "",
		"autoscaling.x-k8s.io/v1beta1 CapacityBuffer": "",
	} {
		var group, kind string
		for i := range text {
			if text[i] == ' ' {
				group, kind = text[:i], text[i+1:]
			}
		}
		version, err := schema.ParseGroupVersion(group)
		require.NoError(t, err)
		old := cluster.ObsoleteOf(version.WithKind(kind), "a")
		if want == "" {
			assert.Nil(t, old, text)
			continue
		}
		if assert.NotNil(t, old, text) {
			assert.Equal(t, &cluster.Obsolete{Kind: kind, Name: "a", APIVersion: group, Successor: want}, old)
		}
	}
}

func TestNodePoolOfAnEarlierVersionIsNotRead(t *testing.T) {
	_, err := cluster.NodePoolFrom(content(t, "{apiVersion: karpenter.sh/v1beta1, kind: NodePool, metadata: {name: a}, spec: {template: {spec: {taints: []}}}}"))
	require.ErrorIs(t, err, cluster.ErrObsolete)
	assert.EqualError(t, err, "apiVersion: karpenter.sh/v1beta1 is not served by Karpenter 1: convert it to karpenter.sh/v1")
	_, err = cluster.NodeClaimFrom(content(t, "{apiVersion: karpenter.sh/v1beta1, kind: NodeClaim, metadata: {name: a}}"))
	require.ErrorIs(t, err, cluster.ErrObsolete)
}
