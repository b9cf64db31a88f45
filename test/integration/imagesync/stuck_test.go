package imagesync_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/await"
)

// runningPod waits for the pod of a placeholder that pulls an image.
func (c *cluster) runningPod(t *testing.T, name, image string) *corev1.Pod {
	t.Helper()
	var found *corev1.Pod
	await.NoProblem(t, limit, "a pod of "+name+" with "+image+" runs", func() string {
		var pods corev1.PodList
		require.NoError(t, c.admin.List(t.Context(), &pods, client.InNamespace(placeholders), client.MatchingLabels{"placeholder": name}))
		for i := range pods.Items {
			pod := &pods.Items[i]
			if pod.DeletionTimestamp == nil && pod.Spec.InitContainers[0].Image == image && pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != "" {
				found = pod
				return ""
			}
		}
		return "none does"
	})
	return found
}

// pulls makes the status of a pod tell, as a kubelet does, that its image cannot be pulled, or (reason "") that it was.
func (c *cluster) pulls(t *testing.T, pod *corev1.Pod, reason string) {
	t.Helper()
	status := corev1.ContainerStatus{Name: pull, Image: pod.Spec.InitContainers[0].Image}
	if reason != "" {
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: "Back-off pulling image"}
	} else {
		status.Ready = true
		status.State.Terminated = &corev1.ContainerStateTerminated{Reason: "Completed"}
	}
	changed := pod.DeepCopy()
	changed.Status.InitContainerStatuses = []corev1.ContainerStatus{status}
	require.NoError(t, c.admin.Status().Patch(t.Context(), changed, client.MergeFrom(pod)))
	*pod = *changed
}

// An image that cannot be pulled takes no more warm nodes away: its rollout is not started anywhere else. What fixes it,
// another image of the template or a pull that succeeds, goes on.
func TestImageThatCannotBePulledIsNotRolledOutFurther(t *testing.T) {
	t.Parallel()
	c := shared
	c.start(t, "stuck", first)
	other := named(manifest("stuck", first), "stuck-other")
	c.apply(t, other)
	c.synced(t, "stuck-other", first)
	c.patchDeployment(t, "stuck-other", `{"spec": {"paused": true}}`)
	c.wrote(t, "stuck-other", 1)

	broken := "registry.example/notebook:broken"
	c.setImage(t, "stuck", broken)
	c.synced(t, "stuck", broken)
	pod := c.runningPod(t, "stuck", broken)
	c.pulls(t, pod, "ErrImagePull")
	note := "placeholder pod " + placeholders + "/" + pod.Name + " cannot pull " + broken + " (ErrImagePull): no further rollout of it is started"
	for kind, name := range map[string]string{"Deployment": "stuck", "WorkspaceTemplate": "stuck"} {
		assert.Equal(t, note, c.told(t, kind, name, "ImageSyncBlocked").Note)
	}
	c.patchDeployment(t, "stuck-other", `{"spec": {"paused": false}}`)
	c.pulls(t, pod, "ImagePullBackOff")
	c.passed(t, "stuck")
	c.wrote(t, "stuck-other", 1)
	assert.Equal(t, first, c.deployment(t, "stuck-other").Spec.Template.Spec.InitContainers[0].Image)
	assert.Len(t, c.events(t, "Deployment", "stuck-other", "ImageSyncBlocked"), 1, "ErrImagePull and ImagePullBackOff take turns")

	c.setImage(t, "stuck", second)
	c.synced(t, "stuck", second)
	c.synced(t, "stuck-other", second)

	c.patchDeployment(t, "stuck-other", `{"spec": {"paused": true}}`)
	c.setImage(t, "stuck", third)
	c.synced(t, "stuck", third)
	pod = c.runningPod(t, "stuck", third)
	c.pulls(t, pod, "ImagePullBackOff")
	c.told(t, "Deployment", "stuck-other", "ImageSyncBlocked", third)
	c.patchDeployment(t, "stuck-other", `{"spec": {"paused": false}}`)
	c.passed(t, "stuck")
	assert.Equal(t, second, c.deployment(t, "stuck-other").Spec.Template.Spec.InitContainers[0].Image)
	c.pulls(t, pod, "")
	c.synced(t, "stuck-other", third)
}
