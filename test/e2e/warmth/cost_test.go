package warmth_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/await"
)

// The controller-manager scales down the placeholder that has its node for itself, be it the oldest, and each time.
func TestScaleDownTakesTheLonely(t *testing.T) {
	c := shared
	const count = 3
	for try := range 10 {
		t.Run(fmt.Sprint(try), func(t *testing.T) {
			pods := c.scale(t, count)
			lonely := pods[try%count]
			for _, pod := range pods {
				if pod != lonely {
					c.workspace(t, "beside-"+pod.Spec.NodeName, pod.Spec.NodeName, "100m")
				}
			}
			for _, pod := range pods {
				c.says(t, pod, pulled)
			}
			c.loses(t, pods, lonely)
		})
	}
}

// loses scales down by one and wants the lonely placeholder to go, once the costs of all say so, and no other.
func (c *cluster) loses(t *testing.T, pods []*corev1.Pod, lonely *corev1.Pod) {
	t.Helper()
	for _, pod := range pods {
		c.costs(t, pod, pod != lonely)
	}
	_, _, err := c.Kubectl(t.Context(), "", "scale", fmt.Sprintf("--replicas=%d", len(pods)-1), "-n", placeholders, "deployment/spaces-placeholder-cpu")
	require.NoError(t, err)
	c.settled(t, len(pods)-1)
	for _, pod := range pods {
		assert.Equal(t, pod != lonely, c.exists(t, pod), pod.Name)
	}
}

// costs waits until the deletion cost of a placeholder says whether it is beside a Workspace.
func (c *cluster) costs(t *testing.T, pod *corev1.Pod, beside bool) {
	t.Helper()
	want := "100"
	if beside {
		want = "200"
	}
	await.NoProblem(t, limit, "the cost of "+pod.Name, func() string {
		var now corev1.Pod
		require.NoError(t, c.admin.Get(t.Context(), client.ObjectKeyFromObject(pod), &now))
		if got := now.Annotations[corev1.PodDeletionCost]; got != want {
			return fmt.Sprintf("%s costs %q; wanted: %q", pod.Name, got, want)
		}
		return ""
	})
}
