package proof_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// bandwidth is what all nodes together pull, in bytes per second, where a pull is to take its time.
const bandwidth = 10 << 20

// Real kubelets say what a Workspace waits for, with warm nodes and without.
func TestWorkspacesOnRealNodes(t *testing.T) {
	c := newCluster(t)
	c.scale(t, "cpu", 2)
	c.scale(t, "gpu", 1)
	c.nodes.Registry.Limit(bandwidth)
	var warm, cold []start

	t.Run("coexist: it runs beside a placeholder that has pulled its image", func(t *testing.T) {
		s := c.begin(t, c.workspace(t, "workspace-cpu.yaml", "coexist"))
		assert.Contains(t, []string{"cpu-1", "cpu-2"}, s.node)
		assert.Empty(t, s.evicted)
		s.findsImage(t)
		warm = append(warm, s)
	})
	t.Run("preempt: it takes the GPU of a placeholder that has pulled its image", func(t *testing.T) {
		pod := c.workspace(t, "workspace-gpu.yaml", "preempt")
		s := c.begin(t, pod)
		assert.Equal(t, "gpu-1", s.node)
		assert.Equal(t, []string{"gpu-1"}, s.evicted)
		s.findsImage(t)
		warm = append(warm, s)
		require.NoError(t, c.admin.Delete(t.Context(), pod))
		c.scale(t, "gpu", 1) // the placeholder is back
	})
	t.Run("a template's new image is there for the next Workspace", func(t *testing.T) {
		c.nodes.Registry.Limit(0)
		c.push(t, newImage, imageSize)
		c.changeTemplate(t, "cpu", newImage)
		c.nodes.Registry.Limit(bandwidth)
		pod := c.workspace(t, "workspace-cpu.yaml", "renewed")
		pod.Spec.Containers[0].Image = newImage
		s := c.begin(t, pod)
		assert.Contains(t, []string{"cpu-1", "cpu-2"}, s.node)
		s.findsImage(t)
		warm = append(warm, s)
	})
	t.Run("a placeholder that is refused for its size does not fit", c.refusedForSize)
	t.Run("cold: no warm node is in its zone", func(t *testing.T) {
		_, err := c.nodes.Start(t.Context(), cpuNode("cpu-3", "us-west-2c"))
		require.NoError(t, err)
		pod := c.unbound(t, "cold")
		pod.Spec.NodeSelector[corev1.LabelTopologyZone] = "us-west-2c"
		s := c.begin(t, pod)
		assert.Equal(t, "cpu-3", s.node)
		s.pullsImage(t)
		cold = append(cold, s)
		for _, w := range warm {
			assert.Less(t, w.running, s.running)
			t.Logf("warm : cold = 1 : %.1f", s.running.Seconds()/w.running.Seconds())
		}
	})
	t.Run("without warmpool it lands outside of its pool", func(t *testing.T) {
		outside := cpuNode("outside", "us-west-2a")
		delete(outside.Labels, poolLabel)
		_, err := c.nodes.Start(t.Context(), outside)
		require.NoError(t, err)
		kept := c.begin(t, c.unbound(t, "kept"))
		assert.NotEqual(t, "outside", kept.node)
		kept.findsImage(t)
		c.removeWebhooks(t)
		slipped := c.begin(t, c.unbound(t, "slipped"))
		assert.Equal(t, "outside", slipped.node)
		slipped.pullsImage(t)
		warm, cold = append(warm, kept), append(cold, slipped)
	})
	if *figures != "" && !t.Failed() {
		writeFigures(t, warm, cold)
	}
}

// unbound is a Workspace that would do with any node.
func (c *cluster) unbound(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	pod := c.workspace(t, "workspace-cpu.yaml", name)
	pod.Spec.Affinity = nil
	return pod
}

// changeTemplate waits until image sync has rolled the placeholders, each on the node that it had.
func (c *cluster) changeTemplate(t *testing.T, kind, image string) {
	t.Helper()
	ctx := t.Context()
	nodes := slices.Sorted(maps.Values(c.placeholders(t)))
	template := &unstructured.Unstructured{}
	template.SetAPIVersion("workspace.jupyter.org/v1alpha1")
	template.SetKind("WorkspaceTemplate")
	template.SetNamespace("jupyter-k8s-shared")
	template.SetName(kind)
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec": {"defaultImage": %q}}`, image))
	require.NoError(t, c.admin.Patch(ctx, template, patch))
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		var pods corev1.PodList
		require.NoError(t, c.admin.List(ctx, &pods, client.InNamespace(placeholders), client.MatchingLabels{"app": "spaces-placeholder", "type": kind}))
		for i := range pods.Items {
			require.Equal(t, image, pods.Items[i].Spec.InitContainers[0].Image)
			require.Equal(t, corev1.PodRunning, pods.Items[i].Status.Phase)
		}
		require.Len(t, pods.Items, 2)
	}, limit, step)
	assert.Equal(t, nodes, slices.Sorted(maps.Values(c.placeholders(t))))
}

func (c *cluster) refusedForSize(t *testing.T) {
	var deployment appsv1.Deployment
	require.NoError(t, c.admin.Get(t.Context(), client.ObjectKey{Namespace: placeholders, Name: "spaces-placeholder-cpu"}, &deployment))
	pod := deployment.Spec.Template.Spec.DeepCopy()
	pod.Affinity.PodAntiAffinity = nil // its size alone shall keep it out
	for cpus, fits := range map[string]bool{"40": true, "48001m": false} {
		resources := &deployment.Spec.Template.Spec.Containers[0].Resources
		for _, amounts := range []corev1.ResourceList{resources.Requests, resources.Limits} {
			amounts[corev1.ResourceCPU] = resource.MustParse(cpus)
		}
		if err := c.admin.Update(t.Context(), deployment.DeepCopy(), client.DryRunAll); fits {
			require.NoError(t, err, cpus)
		} else {
			require.ErrorContains(t, err, "cpu", cpus)
		}
		resources.DeepCopyInto(&pod.Containers[0].Resources)
		forced := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: placeholders, Name: "forced-" + cpus}, Spec: *pod.DeepCopy()}
		require.NoError(t, c.admin.Create(t.Context(), forced))
		assert.Equal(t, fits, c.scheduled(t, forced), cpus)
		require.NoError(t, c.admin.Delete(t.Context(), forced))
	}
}

// scheduled waits until the scheduler has decided.
func (c *cluster) scheduled(t *testing.T, pod *corev1.Pod) bool {
	t.Helper()
	var decided *corev1.PodCondition
	require.Eventually(t, func() bool {
		require.NoError(t, c.admin.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
		for i := range pod.Status.Conditions {
			if pod.Status.Conditions[i].Type == corev1.PodScheduled {
				decided = &pod.Status.Conditions[i]
			}
		}
		return decided != nil
	}, limit, step)
	if decided.Status != corev1.ConditionTrue {
		assert.Contains(t, decided.Message, "Insufficient cpu")
	}
	return decided.Status == corev1.ConditionTrue
}

// removeWebhooks returns when the API server has noticed.
func (c *cluster) removeWebhooks(t *testing.T) {
	t.Helper()
	require.NoError(t, c.admin.Delete(t.Context(), &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "warmpool-pods"}}))
	require.Eventually(t, func() bool {
		pod := c.unbound(t, "asked")
		require.NoError(t, c.admin.Create(t.Context(), pod, client.DryRunAll))
		return pod.Spec.Affinity == nil
	}, limit, step)
}

// pullsImage checks that the node had to pull.
func (s *start) pullsImage(t *testing.T) {
	t.Helper()
	require.Len(t, s.said, 2)
	assert.Contains(t, s.said[0], "Pulling: ")
	assert.Contains(t, s.said[1], "Successfully pulled")
	assert.Greater(t, s.pulled, int64(imageSize))
}

// findsImage checks that nothing was pulled.
func (s *start) findsImage(t *testing.T) {
	t.Helper()
	require.Len(t, s.said, 1)
	assert.Contains(t, s.said[0], "already present on machine")
	assert.Zero(t, s.pulled)
}
