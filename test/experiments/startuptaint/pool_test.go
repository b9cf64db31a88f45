package startuptaint_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pool makes a NodePool of Karpenter whose nodes come within a second, with the start-up taint or without.
func (l *lab) pool(t *testing.T, name string, tainted bool) {
	t.Helper()
	class := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"nodeRegistrationDelay": "1s"},
	}}
	template := map[string]any{
		"nodeClassRef": map[string]any{"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": name},
		"requirements": []any{map[string]any{"key": corev1.LabelInstanceTypeStable, "operator": "In", "values": []any{"ml.m5.4xlarge"}}},
		"expireAfter":  "Never",
	}
	if tainted {
		template["startupTaints"] = []any{map[string]any{"key": cold.Key, "effect": string(cold.Effect)}}
	}
	l.create(t, class, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"template":   map[string]any{"metadata": map[string]any{"labels": map[string]any{poolLabel: name}}, "spec": template},
			"disruption": map[string]any{"consolidationPolicy": "WhenEmpty", "consolidateAfter": "2s"},
		},
	}})
}

// handmade makes a node of 16 CPUs that Karpenter does not know.
func (l *lab) handmade(t *testing.T, pool string, i int, taints ...corev1.Taint) string {
	t.Helper()
	name := fmt.Sprintf("%s-%d", pool, i)
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	l.create(t, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels: map[string]string{corev1.LabelHostname: name, poolLabel: pool, corev1.LabelOSStable: "linux"},
		},
		Spec:   corev1.NodeSpec{Taints: taints},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
	})
	return name
}

// untaint takes the start-up taint off all nodes of the pool, as a controller would.
func (l *lab) untaint(t *testing.T, pool string) {
	t.Helper()
	for _, node := range l.nodes(t, pool) {
		before := client.MergeFromWithOptions(node.DeepCopy(), client.MergeFromWithOptimisticLock{})
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == cold.Key })
		require.NoError(t, l.Patch(t.Context(), &node, before))
	}
}

// tainted counts the nodes of the pool that have the start-up taint.
func (l *lab) tainted(t *testing.T, pool string) int {
	t.Helper()
	count := 0
	for _, node := range l.nodes(t, pool) {
		if slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == cold.Key }) {
			count++
		}
	}
	return count
}
