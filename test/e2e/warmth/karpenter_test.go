package warmth_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/await"
	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/needs"
)

// nodePool lacks what a test is about: when nodes expire, and when empty ones are given back.
const nodePool = `
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: spaces}
spec: {nodeRegistrationDelay: 1s}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: spaces-cpu}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: spaces}
      requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [ml.m5.4xlarge]}]
      %s
  disruption: {consolidationPolicy: WhenEmpty, %s}
`

// withKarpenter is a cluster of the test's own, with the NodePool completed by these parts.
func withKarpenter(t *testing.T, expiry, disruption string) *cluster {
	t.Helper()
	if !*long {
		needs.Skip(t, needs.Flag, "make e2e sets -long")
	}
	options := controlplane.Options{ControllerManager: true, Scheduler: true, Karpenter: true, Log: t.Output()}
	needs.Check(t, needs.ControlPlane, controlplane.Ready(t.Context(), options))
	cp, err := controlplane.Start(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cp.Stop()) })
	c, err := newCluster(t.Context(), cp)
	require.NoError(t, err)
	objects, err := controlplane.Decode(strings.NewReader(fmt.Sprintf(nodePool, expiry, disruption)))
	require.NoError(t, err)
	require.NoError(t, c.Apply(t.Context(), objects...))
	return c
}

// A node expires as before, be its placeholder warm or still pulling: Karpenter does not evict what says do-not-disrupt, but
// deletes it when the node's time is over, and no budget is asked. Others take their place.
func TestKarpenterExpiresNodes(t *testing.T) {
	c := withKarpenter(t, "expireAfter: 30s\n      terminationGracePeriod: 5s", "consolidateAfter: Never")
	pods := c.scale(t, 2)
	for _, pod := range pods {
		c.has(t, pod, labels("true", first)) // KWOK is the kubelet here
	}
	// The second pulls again. KWOK leaves pods alone that say that they are ready.
	require.NoError(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var pod corev1.Pod
		if err := c.admin.Get(t.Context(), client.ObjectKeyFromObject(pods[1]), &pod); err != nil {
			return err
		}
		pod.Status.Phase = corev1.PodPending
		pod.Status.InitContainerStatuses[0].State = pulling.State
		return c.admin.Status().Update(t.Context(), &pod)
	}))
	c.has(t, pods[1], labels(""))
	for _, pod := range pods {
		await.NoProblem(t, limit, "its node expires", func() string {
			if c.exists(t, pod) {
				return pod.Name + " is there"
			}
			if err := c.admin.Get(t.Context(), client.ObjectKey{Name: pod.Spec.NodeName}, &corev1.Node{}); client.IgnoreNotFound(err) != nil || err == nil {
				return fmt.Sprintf("node %s is there: %v", pod.Spec.NodeName, err)
			}
			return ""
		})
	}
	for _, pod := range c.settled(t, 2) {
		c.has(t, pod, labels("true", first))
	}
}

// The placeholder that is alone on its node goes when the number falls, and Karpenter takes the node away, each time.
func TestKarpenterRemovesTheNodeOfTheLonely(t *testing.T) {
	c := withKarpenter(t, "expireAfter: Never", `consolidateAfter: 1s, budgets: [{nodes: "100%"}]`)
	const count = 3
	for try := range 10 {
		t.Run(fmt.Sprint(try), func(t *testing.T) {
			pods := c.scale(t, count)
			lonely := pods[try%count]
			for _, pod := range pods {
				c.has(t, pod, labels("true", first)) // KWOK is the kubelet here
				if pod != lonely {
					c.workspaceOn(t, pod.Spec.NodeName)
				}
			}
			c.loses(t, pods, lonely)
			await.NoProblem(t, limit, "its node goes with it", func() string {
				if err := c.admin.Get(t.Context(), client.ObjectKey{Name: lonely.Spec.NodeName}, &corev1.Node{}); client.IgnoreNotFound(err) != nil || err == nil {
					return fmt.Sprintf("node %s is there: %v", lonely.Spec.NodeName, err)
				}
				return ""
			})
			for _, pod := range pods {
				if pod != lonely {
					require.NoError(t, c.admin.Get(t.Context(), client.ObjectKey{Name: pod.Spec.NodeName}, &corev1.Node{}), "it has a Workspace")
				}
			}
		})
	}
}

// workspaceOn puts a Workspace on a node: nodes of Karpenter's fake provider cannot be selected by their hostname.
func (c *cluster) workspaceOn(t *testing.T, node string) {
	t.Helper()
	name := "on-" + node
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name, Labels: map[string]string{"workspace.jupyter.org/workspace-name": name}},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(bool), NodeName: node,
			Containers: []corev1.Container{{Name: "workspace", Image: first}},
		},
	}
	require.NoError(t, c.admin.Create(t.Context(), pod))
	t.Cleanup(func() {
		assert.NoError(t, c.admin.Delete(context.WithoutCancel(t.Context()), pod, client.GracePeriodSeconds(0)))
	})
}
