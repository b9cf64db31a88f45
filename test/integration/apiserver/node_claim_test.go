package apiserver_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A NodeClaim as Karpenter makes it for the pool starting, which has no node.
const startingClaim = `
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: starting-x7k2p, labels: {karpenter.sh/nodepool: starting}}
spec:
  NODECLASS
  requirements:
  - {key: node.kubernetes.io/instance-type, operator: In, values: [ml.m5.large]}
  - {key: kubernetes.io/os, operator: In, values: [linux]}
`

// A pool without nodes takes its numbers from what Karpenter says of the node that it starts, and later from the node;
// each change counts without a restart.
func TestNumbersOfAPoolWithoutNodes(t *testing.T) {
	u := newUser(t)
	namespace := u.namespace(t)
	const oversize = "1931m"
	warnings := func() string {
		_, err := u.AppsV1().Deployments(namespace).Create(t.Context(), startingPlaceholder(t, oversize), dryRun)
		require.NoError(t, err)
		return strings.Join(u.warnings(t), "\n")
	}
	assert.Contains(t, warnings(), "not verified: sizing: no node of pool starting has been seen")

	claim := createClaim(t)
	assert.Contains(t, warnings(), "not verified: sizing: no node of pool starting has been seen", "it is not launched yet")
	patch := `{"status":{"allocatable":{"cpu":"1930m","memory":"7Gi","pods":"29"}}}`
	require.NoError(t, admin.Status().Patch(t.Context(), claim, client.RawPatch("application/merge-patch+json", []byte(patch))))
	var refused error
	eventually(t, "the NodeClaim's numbers count", func() bool {
		_, refused = u.AppsV1().Deployments(namespace).Create(t.Context(), startingPlaceholder(t, oversize), dryRun)
		return refused != nil
	})
	denied(t, refused, cause{"spec.template.spec.containers[0].resources.requests[cpu]",
		"cpu 1931m requested, 1930m available on ml.m5.large (1m short): 1930m allocatable (NodeClaim starting-x7k2p)"})
	_, err := u.AppsV1().Deployments(namespace).Create(t.Context(), startingPlaceholder(t, "1930m"), dryRun)
	require.NoError(t, err)

	createNode(t, "starting-larger", "ml.m5.xlarge", "3920m")
	eventually(t, "a node counts more than a NodeClaim", func() bool {
		_, err := u.AppsV1().Deployments(namespace).Create(t.Context(), startingPlaceholder(t, "3920m"), dryRun)
		return err == nil
	})
	createNode(t, "starting-smaller", "ml.m5.large", "1930m")
	eventually(t, "another type counts too", func() bool {
		return strings.Contains(warnings(), "fits ml.m5.xlarge but not ml.m5.large")
	})
}

// startingPlaceholder asks for so much cpu in the pool starting.
func startingPlaceholder(t *testing.T, cpu string) *appsv1.Deployment {
	t.Helper()
	d := placeholder(t, "starting")
	d.Spec.Template.Spec.Containers[0].Resources = fromYAML[corev1.ResourceRequirements](t,
		`{requests: {cpu: `+cpu+`, memory: 1Gi}, limits: {cpu: `+cpu+`, memory: 1Gi}}`)
	return d
}

// createClaim creates the NodeClaim, until the test ends.
func createClaim(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	objects, err := decodeText(strings.Replace(startingClaim, "NODECLASS", nodeClass, 1))
	require.NoError(t, err)
	require.NoError(t, admin.Create(t.Context(), objects[0]))
	t.Cleanup(func() { assert.NoError(t, admin.Delete(cleanup, objects[0])) })
	return objects[0]
}

// createNode creates a node of the pool starting, until the test ends.
func createNode(t *testing.T, name, instanceType, cpu string) {
	t.Helper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"karpenter.sh/nodepool": "starting", corev1.LabelInstanceTypeStable: instanceType}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("7Gi")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	require.NoError(t, admin.Create(t.Context(), node))
	t.Cleanup(func() { assert.NoError(t, admin.Delete(cleanup, node)) })
}
