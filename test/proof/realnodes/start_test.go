package proof_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	placeholders = "overprovisioning"
	limit        = 90 * time.Second
	step         = 50 * time.Millisecond
)

// start is how a Workspace came to run.
type start struct {
	name           string
	node           string
	bound, running time.Duration // after the creation
	pulled         int64         // bytes that its node was sent meanwhile
	said           []string      // the kubelet's events about images, in their order
	evicted        []string      // the nodes of placeholders that are gone
}

// workspace is the pod of a file in manifests/try, without a volume: nothing provides those here.
func (c *cluster) workspace(t *testing.T, file, name string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(c.read(t, "manifests", "try", file)[0].Object, pod))
	pod.Name = name
	pod.Spec.Volumes = nil
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].VolumeMounts = nil
	}
	return pod
}

// begin creates a Workspace and waits until it runs.
func (c *cluster) begin(t *testing.T, pod *corev1.Pod) start {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	before := c.placeholders(t)
	sent := map[string]int64{}
	for _, name := range []string{"cpu-1", "cpu-2", "cpu-3", "gpu-1", "outside"} {
		if node := c.nodes.Node(name); node != nil {
			sent[name] = c.nodes.Registry.Pulled(node.IP)
		}
	}
	watch, err := c.admin.Watch(ctx, &corev1.PodList{}, client.InNamespace(pod.Namespace), client.MatchingFields{"metadata.name": pod.Name})
	require.NoError(t, err)
	defer watch.Stop()
	began := time.Now()
	require.NoError(t, c.admin.Create(ctx, pod))
	s := start{name: pod.Name}
	for event := range watch.ResultChan() {
		now, ok := event.Object.(*corev1.Pod)
		require.True(t, ok, "%v", event.Object)
		if s.node == "" && now.Spec.NodeName != "" {
			s.node, s.bound = now.Spec.NodeName, time.Since(began)
		}
		if now.Status.Phase == corev1.PodRunning {
			s.running = time.Since(began)
			break
		}
	}
	require.NotZero(t, s.running, "the Workspace does not run: %v", c.said(t, pod))
	s.pulled = c.nodes.Registry.Pulled(c.nodes.Node(s.node).IP) - sent[s.node]
	s.said = c.said(t, pod)
	after := c.placeholders(t)
	for uid, node := range before {
		if _, ok := after[uid]; !ok {
			s.evicted = append(s.evicted, node)
		}
	}
	t.Logf("%s on %s: bound after %.2f s, running after %.2f s, %d MiB pulled, placeholders evicted from %v; %s",
		pod.Name, s.node, s.bound.Seconds(), s.running.Seconds(), s.pulled>>20, s.evicted, strings.Join(s.said, "; "))
	return s
}

// said waits for the event after which a container starts.
func (c *cluster) said(t *testing.T, pod *corev1.Pod) []string {
	t.Helper()
	var said []string
	ctx := t.Context()
	assert.EventuallyWithT(t, func(t *assert.CollectT) {
		var events corev1.EventList
		require.NoError(t, c.admin.List(ctx, &events, client.InNamespace(pod.Namespace), client.MatchingFields{"involvedObject.uid": string(pod.UID)}))
		said = nil
		pulled := false
		for i := range events.Items {
			if event := &events.Items[i]; event.Reason == "Pulling" || event.Reason == "Pulled" {
				said = append(said, event.Reason+": "+event.Message)
				pulled = pulled || event.Reason == "Pulled"
			}
		}
		require.True(t, pulled, said)
	}, limit, step)
	return said
}

// placeholders are the nodes of those that are not being deleted, by UID.
func (c *cluster) placeholders(t *testing.T) map[types.UID]string {
	t.Helper()
	var pods corev1.PodList
	require.NoError(t, c.admin.List(t.Context(), &pods, client.InNamespace(placeholders), client.MatchingLabels{"app": "spaces-placeholder"}))
	nodes := map[types.UID]string{}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil {
			nodes[pods.Items[i].UID] = pods.Items[i].Spec.NodeName
		}
	}
	return nodes
}

// scale does what the autoscaler does, and waits until as many placeholders run.
func (c *cluster) scale(t *testing.T, kind string, count int) {
	t.Helper()
	ctx := t.Context()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: placeholders, Name: "spaces-placeholder-" + kind}}
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: int32(count)}}
	require.NoError(t, c.admin.SubResource("scale").Update(ctx, deployment, client.WithSubResourceBody(scale)))
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		var pods corev1.PodList
		require.NoError(t, c.admin.List(ctx, &pods, client.InNamespace(placeholders), client.MatchingLabels{"app": "spaces-placeholder", "type": kind}))
		running := 0
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodRunning {
				running++
			}
		}
		require.Equal(t, count, running)
	}, limit, step)
}
