package warmth_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/await"
	"warmpool.sh/test/harness/controlplane"
)

// evict asks as kubectl drain and Karpenter do.
func (c *cluster) evict(ctx context.Context, pod *corev1.Pod, options ...client.SubResourceCreateOption) error {
	return c.admin.SubResource("eviction").Create(ctx, pod.DeepCopy(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}, options...)
}

// held reports whether a budget refuses that a pod is evicted; nothing is evicted.
func (c *cluster) held(t *testing.T, pod *corev1.Pod) bool {
	t.Helper()
	err := c.evict(t.Context(), pod, client.DryRunAll)
	if !apierrors.IsTooManyRequests(err) {
		require.NoError(t, err)
		return false
	}
	return true
}

// drain does what an administrator does; it gives up early.
func (c *cluster) drain(t *testing.T, node string) error {
	t.Helper()
	_, _, err := c.Kubectl(t.Context(), "", "drain", node, "--timeout=4s")
	return err
}

func (c *cluster) exists(t *testing.T, pod *corev1.Pod) bool {
	t.Helper()
	var now corev1.Pod
	err := c.admin.Get(t.Context(), client.ObjectKeyFromObject(pod), &now)
	require.NoError(t, client.IgnoreNotFound(err))
	return err == nil && now.UID == pod.UID && now.DeletionTimestamp == nil
}

// covered waits until the budget has looked at its pods and covers this many.
func (c *cluster) covered(t *testing.T, count int32) {
	t.Helper()
	await.NoProblem(t, limit, "the budget has seen the pods", func() string {
		var budget policyv1.PodDisruptionBudget
		require.NoError(t, c.admin.Get(t.Context(), client.ObjectKey{Namespace: placeholders, Name: "spaces-placeholder-cpu"}, &budget))
		require.Zero(t, budget.Status.DisruptionsAllowed)
		return wanted(int(count), int(budget.Status.CurrentHealthy))
	})
}

// No placeholder holds up a drain: neither a warm one nor one that keeps failing, which the budget does not cover, nor one
// that still pulls, for the API server evicts Pending pods without asking a budget.
func TestDrains(t *testing.T) {
	c := shared
	pods := c.scale(t, 3)
	c.says(t, pods[0], pulled)
	c.says(t, pods[1], waits("ImagePullBackOff"))
	c.says(t, pods[2], pulling)
	c.has(t, pods[0], labels("true", first))
	c.has(t, pods[1], labels("failed"))
	for _, pod := range pods {
		require.NoError(t, c.drain(t, pod.Spec.NodeName))
		assert.False(t, c.exists(t, pod))
	}
	await.NoProblem(t, limit, "others have come in their place", func() string { return wanted(3, len(c.pods(t.Context(), t))) })
}

// While no one leads, labels stay as they are and all goes on: what was warm can be evicted, Workspaces find a place, the
// pods that come are evicted while they pull. Only those that have come to run since wait for a leader.
func TestNobodyLeads(t *testing.T) {
	c := shared
	pods := c.scale(t, 3)
	c.says(t, pods[0], pulled)
	c.has(t, pods[0], labels("true", first))
	require.NoError(t, c.warmpool.Stop())
	c.says(t, pods[1], pulled)
	c.says(t, pods[2], pulling)
	c.covered(t, 1)
	assert.Equal(t, labels("true", first), c.labelsOf(t, pods[0]))
	assert.False(t, c.held(t, pods[0]))
	assert.True(t, c.held(t, pods[1]))
	assert.False(t, c.held(t, pods[2]))
	require.ErrorContains(t, c.drain(t, pods[1].Spec.NodeName), "global timeout")
	assert.True(t, c.exists(t, pods[1]))
	require.NoError(t, c.drain(t, pods[0].Spec.NodeName))
	c.settled(t, 3)

	c.warmpool = c.start(t, c.warmpool.WebhookPort)
	c.has(t, pods[1], labels("true", first))
	require.NoError(t, c.drain(t, pods[1].Spec.NodeName))
	assert.False(t, c.exists(t, pods[1]))
}

// A Workspace that finds no room takes the place of the warm placeholder, though the other started last; and that of the
// other when there is no warm one.
func TestPreemption(t *testing.T) {
	c := shared
	pods := c.scale(t, nodes)
	for i, pod := range pods {
		if i == 0 {
			c.says(t, pod, pulled)
			c.has(t, pod, labels("true", first))
		} else {
			c.says(t, pod, pulling)
		}
	}
	for i, name := range []string{"finds-a-warm-one", "finds-none"} {
		big := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "workspace", Image: first, Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3500m")},
			}}}},
		}
		require.NoError(t, c.admin.Create(t.Context(), big))
		t.Cleanup(func() {
			assert.NoError(t, c.admin.Delete(context.WithoutCancel(t.Context()), big, client.GracePeriodSeconds(0)))
		})
		await.NoProblem(t, limit, name+" is on a node", func() string {
			require.NoError(t, c.admin.Get(t.Context(), client.ObjectKeyFromObject(big), big))
			if big.Spec.NodeName == "" {
				return fmt.Sprint(big.Status.Conditions)
			}
			return ""
		})
		if i == 0 {
			assert.Equal(t, pods[0].Spec.NodeName, big.Spec.NodeName)
			assert.False(t, c.exists(t, pods[0]))
		} else {
			assert.NotEqual(t, pods[0].Spec.NodeName, big.Spec.NodeName)
		}
	}
}

// A change of the template rolls the placeholders out as before: a rollout deletes pods, which no budget is asked about.
// The new pods are labelled for their own image.
func TestRollout(t *testing.T) {
	c := shared
	const count = 3
	for _, pod := range c.scale(t, count) {
		c.says(t, pod, pulled)
		c.has(t, pod, labels("true", first))
	}
	var d appsv1.Deployment
	deployment := func(ctx context.Context) *appsv1.Deployment {
		require.NoError(t, c.admin.Get(ctx, client.ObjectKey{Namespace: placeholders, Name: "spaces-placeholder-cpu"}, &d))
		return &d
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		require.NoError(t, c.setImage(ctx, first))
		await.NoProblem(t, limit, "it is as it was", func() string {
			if image := deployment(ctx).Spec.Template.Spec.InitContainers[0].Image; image != first {
				return "it pulls " + image
			}
			return ""
		})
	})
	require.NoError(t, c.setImage(t.Context(), second))
	await.NoProblem(t, limit, "all pods pull the other image", func() string {
		pods := c.pods(t.Context(), t)
		require.LessOrEqual(t, len(pods), count)
		done := 0
		for _, pod := range pods {
			if pod.Spec.InitContainers[0].Image != second || pod.Spec.NodeName == "" {
				continue
			}
			if pod.Status.Phase == corev1.PodRunning {
				done++
				continue
			}
			if err := c.say(t.Context(), pod, []corev1.ContainerStatus{pulled}); err != nil {
				return err.Error()
			}
		}
		return wanted(count, done)
	})
	for _, pod := range c.pods(t.Context(), t) {
		c.has(t, pod, labels("true", second))
	}
	await.NoProblem(t, limit, "the rollout is over", func() string { return wanted(count, int(deployment(t.Context()).Status.UpdatedReplicas)) })
}

// The other replica goes on where one was killed: what has changed meanwhile is put right, and nothing else is written.
func TestLeaderIsKilled(t *testing.T) {
	c := shared
	pods := c.scale(t, 4)
	c.says(t, pods[0], pulled)
	c.says(t, pods[1], pulled)
	c.says(t, pods[2], pulling)
	c.says(t, pods[3], pulling)
	c.has(t, pods[0], labels("true", first))
	c.has(t, pods[1], labels("true", first))

	port, err := controlplane.FreePort()
	require.NoError(t, err)
	follower := c.start(t, port)
	require.NoError(t, c.warmpool.Kill())
	c.says(t, pods[1], again(pulling, pulled))
	c.says(t, pods[2], waits("ImagePullBackOff"))
	require.NoError(t, c.admin.Delete(t.Context(), pods[3]))
	assert.Equal(t, labels("true", first), c.labelsOf(t, pods[1]), "no one leads")

	c.expire(t)
	c.has(t, pods[1], labels(""))
	c.has(t, pods[2], labels("failed"))
	next := c.settled(t, 4)[3]
	c.says(t, next, pulled)
	c.has(t, next, labels("true", first))
	counted(t, follower, map[string]int{"warm": 2, "failed": 1, "pulling": 1})
	for i, times := range []int{1, 2, 1, 0} {
		c.wrote(t, pods[i], times)
	}
	c.wrote(t, next, 1)

	// A restart writes nothing either.
	before := len(labelWrites(c.writes(t, "")))
	require.NoError(t, follower.Stop())
	c.warmpool = c.start(t, c.warmpool.WebhookPort)
	counted(t, c.warmpool, map[string]int{"warm": 2, "failed": 1, "pulling": 1})
	c.says(t, pods[1], pulled)
	c.has(t, pods[1], labels("true", first))
	c.wrote(t, pods[1], 3)
	assert.Len(t, labelWrites(c.writes(t, "")), before+1)
}
