package proof_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
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
	var warm []start

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
	t.Run("cold: no warm node is in its zone", func(t *testing.T) {
		_, err := c.nodes.Start(t.Context(), cpuNode("cpu-3", "us-west-2c"))
		require.NoError(t, err)
		pod := c.workspace(t, "workspace-cpu.yaml", "cold")
		pod.Spec.NodeSelector[corev1.LabelTopologyZone] = "us-west-2c"
		pod.Spec.Affinity = nil
		s := c.begin(t, pod)
		assert.Equal(t, "cpu-3", s.node)
		assert.Contains(t, strings.Join(s.said, "\n"), "Pulling: ")
		assert.Greater(t, s.pulled, int64(imageSize))
		for _, w := range warm {
			assert.Less(t, w.running, s.running)
			t.Logf("warm : cold = 1 : %.1f", s.running.Seconds()/w.running.Seconds())
		}
	})
	t.Run("both replicas placed Workspaces in their pools", func(t *testing.T) {
		var pods corev1.PodList
		require.NoError(t, c.admin.List(t.Context(), &pods, client.InNamespace("team-b")))
		for i := range pods.Items {
			affinity := pods.Items[i].Spec.Affinity
			require.NotNil(t, affinity, pods.Items[i].Name)
			assert.NotNil(t, affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution, pods.Items[i].Name)
		}
	})
}

// findsImage checks that nothing was pulled.
func (s *start) findsImage(t *testing.T) {
	t.Helper()
	require.Len(t, s.said, 1)
	assert.Contains(t, s.said[0], "already present on machine")
	assert.Zero(t, s.pulled)
}
