package warmth_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/await"
)

// nodes is how many there are; each has room for a placeholder, or for a pod that needs its place.
const nodes = 5

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

// addNode makes a node of the pool cpu whose kubelet are the tests.
func (c *cluster) addNode(ctx context.Context, name string) error {
	offer := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"), corev1.ResourcePods: resource.MustParse("30"),
	}
	return c.CreateNode(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", "karpenter.sh/nodepool": "spaces-cpu",
		}},
		Status: corev1.NodeStatus{
			Capacity: offer, Allocatable: offer,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}},
		},
	})
}

// beat renews the nodes' leases, or they would count as lost.
func (c *cluster) beat(ctx context.Context) {
	for {
		for i := range nodes {
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: nodeName(i)}}
			now := metav1.NowMicro()
			err := c.admin.Get(ctx, client.ObjectKeyFromObject(lease), lease)
			lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: new(nodeName(i)), LeaseDurationSeconds: new(int32(40)), RenewTime: &now}
			if err != nil {
				err = c.admin.Create(ctx, lease)
			} else {
				err = c.admin.Update(ctx, lease)
			}
			if err != nil && ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, "renew the lease of a node:", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(5 * time.Second):
		}
	}
}

// Statuses of a pre-pull container.
func ended(code int32, reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}}}
}

func waits(reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
}

func again(s corev1.ContainerStatus, last corev1.ContainerStatus) corev1.ContainerStatus {
	s.LastTerminationState, s.RestartCount = last.State, 1
	return s
}

var (
	pulled  = ended(0, "Completed")
	pulling = waits("PodInitializing")
)

// says is what a kubelet does: it writes the statuses of the init containers, in their order. When all have ended well, the
// pod runs and is ready; before, its phase is Pending.
func (c *cluster) says(t *testing.T, pod *corev1.Pod, statuses ...corev1.ContainerStatus) {
	t.Helper()
	require.NoError(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error { return c.say(t.Context(), pod, statuses) }))
}

func (c *cluster) say(ctx context.Context, of *corev1.Pod, statuses []corev1.ContainerStatus) error {
	var pod corev1.Pod
	if err := c.admin.Get(ctx, client.ObjectKeyFromObject(of), &pod); err != nil {
		return err
	}
	phase, ready := corev1.PodRunning, corev1.ConditionTrue
	pod.Status.InitContainerStatuses = nil
	for i, status := range statuses {
		container := pod.Spec.InitContainers[i]
		status.Name, status.Image = container.Name, container.Image
		if status.State.Terminated == nil || status.State.Terminated.ExitCode != 0 {
			phase, ready = corev1.PodPending, corev1.ConditionFalse
		}
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, status)
	}
	pod.Status.Phase = phase
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady} {
		pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: ready, LastTransitionTime: metav1.Now()})
	}
	return c.admin.Status().Update(ctx, &pod)
}

// scale gives the pods of the placeholder cpu, oldest first, when there are this many and each has a node; afterwards there
// are none again.
func (c *cluster) scale(t *testing.T, count int) []*corev1.Pod {
	t.Helper()
	set := func(ctx context.Context, count int) {
		_, _, err := c.Kubectl(ctx, "", "scale", fmt.Sprintf("--replicas=%d", count), "-n", placeholders, "deployment/spaces-placeholder-cpu")
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		set(ctx, 0)
		await.NoProblem(t, limit, "the placeholders are gone", func() string { return wanted(0, len(c.pods(ctx, t))) })
		_, _, err := c.Kubectl(ctx, "", "uncordon", "--selector=karpenter.sh/nodepool")
		require.NoError(t, err)
	})
	set(t.Context(), count)
	return c.settled(t, count)
}

// settled waits until there are this many pods of the placeholder cpu, each on a node.
func (c *cluster) settled(t *testing.T, count int) []*corev1.Pod {
	t.Helper()
	var pods []*corev1.Pod
	await.NoProblem(t, limit, "the placeholders are on nodes", func() string {
		pods = c.pods(t.Context(), t)
		for _, pod := range pods {
			if pod.Spec.NodeName == "" {
				return pod.Name + " has no node"
			}
		}
		return wanted(count, len(pods))
	})
	return pods
}

func wanted(count, got int) string {
	if got != count {
		return fmt.Sprintf("there are %d; wanted: %d", got, count)
	}
	return ""
}

func (c *cluster) pods(ctx context.Context, t *testing.T) []*corev1.Pod {
	t.Helper()
	var list corev1.PodList
	require.NoError(t, c.admin.List(ctx, &list, client.InNamespace(placeholders), client.MatchingLabels{"app": "spaces-placeholder"}))
	var pods []*corev1.Pod
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			pods = append(pods, &list.Items[i])
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return pods
}

func merge(patch string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(patch)) }
