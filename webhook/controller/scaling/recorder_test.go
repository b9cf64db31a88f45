package scaling

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"warmpool.sh/webhook/config"
)

func workspace(name string, created time.Time) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: name, UID: types.UID(fmt.Sprint(name, created.UnixNano())), CreationTimestamp: metav1.NewTime(created),
		Labels: map[string]string{config.WorkspaceLabel: name},
	}}
}

func running(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	return pod
}

// Restarts count, retries do not; nor does what belongs to no pool, or has ended before it was seen.
func TestRecorder(t *testing.T) {
	inBubble(t, "{}", one, func(r *rig) {
		c := r.controller
		count := func() int { return len(c.take(time.Now())) }
		first := workspace("w", time.Now())
		c.Seen(first)
		c.Seen(running(first))
		assert.Equal(t, 1, count(), "once")
		c.Gone(running(first))
		time.Sleep(time.Minute)
		again := workspace("w", time.Now())
		c.Seen(again)
		assert.Equal(t, 1, count(), "a restart")

		failed := running(again)
		failed.Status.Phase = corev1.PodFailed
		c.Seen(failed)
		retry := workspace("w", time.Now().Add(20*time.Second))
		c.Seen(retry)
		assert.Zero(t, count(), "a retry")
		c.Started(retry, "cpu", false)
		assert.Zero(t, count(), "nor is it judged")
		c.Seen(workspace("other", time.Now()))
		assert.Equal(t, 1, count())
		time.Sleep(11 * time.Minute)
		c.Seen(workspace("w", time.Now()))
		assert.Equal(t, 1, count(), "long after")

		crashed := workspace("crashed", time.Now())
		c.Seen(crashed)
		c.Gone(crashed)
		c.Seen(workspace("crashed", time.Now().Add(time.Second)))
		assert.Equal(t, 1, count(), "it never ran")

		gpu := workspace("gpu", time.Now())
		gpu.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}}}
		elsewhere := workspace("elsewhere", time.Now())
		elsewhere.Spec.NodeSelector = map[string]string{"karpenter.sh/nodepool": "another"}
		ended := workspace("ended", time.Now())
		ended.Status.Phase = corev1.PodSucceeded
		for _, pod := range []*corev1.Pod{gpu, elsewhere, ended} {
			c.Seen(pod)
		}
		assert.Zero(t, count())
		c.Gone(gpu)
		assert.NotContains(t, c.counted, gpu.UID)
		time.Sleep(time.Hour)
		c.take(time.Now())
		assert.Empty(t, c.failed)
	})
}

// A hostile burst fills no memory.
func TestRecorderIsBounded(t *testing.T) {
	inBubble(t, "{}", one, func(r *rig) {
		for i := range mostNews + 10 {
			r.controller.add(news{pool: fmt.Sprint(i)})
		}
		assert.Len(t, r.controller.take(time.Now()), mostNews)
	})
}
