package manifest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"warmpool.sh/webhook/cluster/manifest"
)

func objects(t testing.TB, text string) []manifest.Object {
	t.Helper()
	found, err := manifest.Objects([]string{"-"}, strings.NewReader(text))
	require.NoError(t, err)
	return found
}

func TestSnapshotHoldsTheObjects(t *testing.T) {
	snapshot, err := manifest.Snapshot(objects(t, `
{apiVersion: v1, kind: Node, metadata: {name: n1}, spec: {taints: [{key: a, effect: NoSchedule}]}, status: {allocatable: {nvidia.com/gpu: 8}}}
---
{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: gpu-a}, spec: {template: {metadata: {labels: {team: ml}}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: x}, spec: {replicas: 2}}
---
{apiVersion: workspace.jupyter.org/v1alpha1, kind: WorkspaceTemplate, metadata: {name: gpu, namespace: x}, spec: {defaultImage: i}}
---
{apiVersion: karpenter.sh/v1, kind: NodeClaim, metadata: {name: c1}, status: {allocatable: {cpu: 3920m}}}
---
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent, namespace: x}, spec: {template: {spec: {hostNetwork: true}}}}
---
{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: kata}, handler: kata, overhead: {podFixed: {memory: 160Mi}}}
---
{apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: x}, spec: {limits: [{type: Pod, max: {cpu: 4}}]}}
`))
	require.NoError(t, err)
	node := snapshot.Nodes.Get("n1")
	assert.Equal(t, []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}, node.Spec.Taints)
	assert.EqualValues(t, 8, node.Status.Allocatable.Name("nvidia.com/gpu", "").Value())
	assert.Equal(t, map[string]string{"team": "ml"}, snapshot.NodePools.Get("gpu-a").Labels)
	assert.EqualValues(t, 2, *snapshot.Deployments.Get("x/d").Spec.Replicas)
	assert.Equal(t, "i", snapshot.Templates.Get("x/gpu").DefaultImage)
	assert.Equal(t, "3920m", snapshot.NodeClaims.Get("c1").Allocatable.Cpu().String())
	assert.True(t, snapshot.DaemonSets.Get("x/agent").Spec.Template.Spec.HostNetwork)
	assert.Equal(t, "160Mi", snapshot.RuntimeClasses.Get("kata").Overhead.PodFixed.Memory().String())
	assert.Equal(t, "4", snapshot.LimitRanges.Get("x/l").Spec.Limits[0].Max.Cpu().String())
	assert.Empty(t, snapshot.LimitRanges.Get("x/l").Spec.Limits[0].Default, "only containers get defaults")
}

func TestSnapshotOfNothingKnowsEverything(t *testing.T) {
	snapshot, err := manifest.Snapshot(nil)
	require.NoError(t, err)
	assert.True(t, snapshot.Nodes.Known() && snapshot.NodePools.Known() && snapshot.PriorityClasses.Known() &&
		snapshot.Namespaces.Known() && snapshot.Templates.Known() && snapshot.Deployments.Known() &&
		snapshot.DaemonSets.Known() && snapshot.NodeClaims.Known() && snapshot.LimitRanges.Known() && snapshot.RuntimeClasses.Known())
	assert.True(t, snapshot.LastSeen.Known())
	assert.Zero(t, snapshot.LastSeen.Len())
	assert.Equal(t, 2, snapshot.PriorityClasses.Len())
	assert.EqualValues(t, 2000000000, snapshot.PriorityClasses.Get("system-cluster-critical").Value)
	assert.EqualValues(t, 2000001000, snapshot.PriorityClasses.Get("system-node-critical").Value)
}

func TestSnapshotAddsWhatTheAPIServerAdds(t *testing.T) {
	snapshot, err := manifest.Snapshot(objects(t, `
{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {b: c}}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: system-node-critical}, value: 7}
---
{apiVersion: v1, kind: Node, metadata: {name: reserves}, status: {capacity: {cpu: 8}, allocatable: {cpu: 7}}}
---
{apiVersion: v1, kind: Node, metadata: {name: tells-capacity}, status: {capacity: {cpu: 8}}}
---
{apiVersion: v1, kind: Node, metadata: {name: tells-nothing}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: l}
spec:
  limits:
  - type: Container
    max: {cpu: 8, memory: 8Gi}
    min: {cpu: 100m, ephemeral-storage: 1Gi}
    default: {memory: 4Gi, nvidia.com/gpu: 1}
    defaultRequest: {nvidia.com/gpu: 0}
`))
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"b": "c", "kubernetes.io/metadata.name": "a"}, snapshot.Namespaces.Get("a").Labels)
	assert.EqualValues(t, 7, snapshot.PriorityClasses.Get("system-node-critical").Value, "what the files say wins")

	assert.Equal(t, "7", snapshot.Nodes.Get("reserves").Status.Allocatable.Cpu().String())
	assert.Equal(t, "8", snapshot.Nodes.Get("tells-capacity").Status.Allocatable.Cpu().String())
	assert.Empty(t, snapshot.Nodes.Get("tells-nothing").Status.Allocatable)

	quantity := resource.MustParse
	limits := snapshot.LimitRanges.Get("default/l").Spec.Limits[0]
	assert.Equal(t, corev1.ResourceList{"cpu": quantity("8"), "memory": quantity("4Gi"), "nvidia.com/gpu": quantity("1")}, limits.Default)
	assert.Equal(t, corev1.ResourceList{
		"cpu": quantity("8"), "memory": quantity("4Gi"), "nvidia.com/gpu": quantity("0"), "ephemeral-storage": quantity("1Gi"),
	}, limits.DefaultRequest)
}

func TestTyped(t *testing.T) {
	found := objects(t, `
{apiVersion: v1, kind: Pod, metadata: {name: w1}, spec: {containers: [{name: a, image: b}]}, status: {novelty: 1, phase: Running}}
---
{apiVersion: v1, kind: Pod, metadata: {name: w2}, spec: {priorty: 1, containers: [{name: a, image: b}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: w3}, spec: {containers: [{name: a, image: b, ports: [{containerPort: eighty}]}]}}
`)
	pod, err := manifest.Typed[corev1.Pod](found[0])
	require.NoError(t, err)
	assert.Equal(t, "b", pod.Spec.Containers[0].Image)
	assert.Equal(t, corev1.PodRunning, pod.Status.Phase)

	_, err = manifest.Typed[corev1.Pod](found[1])
	assert.EqualError(t, err, `standard input, document 2 (Pod default/w2): unknown field "spec.priorty"; correct or remove it`)
	_, err = manifest.Typed[corev1.Pod](found[2])
	assert.EqualError(t, err, "standard input, document 3 (Pod default/w3): spec.containers[0].ports[0].containerPort: got a value of type string, want a whole number")
	_, err = manifest.Typed[appsv1.Deployment](found[0])
	assert.EqualError(t, err, "standard input, document 1 (Pod default/w1): is a Pod of v1, want a Deployment of apps/v1")
}
