package imagesync

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/cluster"
)

func TestFailuresOf(t *testing.T) {
	leaving := failingPod("r/leaving", "ErrImagePull")
	leaving.DeletionTimestamp = &metav1.Time{}
	foreign := failingPod("r/foreign", "ErrImagePull")
	foreign.Spec.InitContainers[0].Name, foreign.Status.InitContainerStatuses[0].Name = "mine", "mine"
	running := failingPod("r/running", "")
	running.Status.InitContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	second := failingPod("r/second", "InvalidImageName")
	second.Spec.InitContainers[0].Name, second.Status.InitContainerStatuses[0].Name = "pull-workspace-image-2", "pull-workspace-image-2"
	found := failuresOf(cluster.Known(map[string]*corev1.Pod{
		"ns/b":        failingPod("r/typo", "ErrImagePull"),
		"ns/a":        failingPod("r/typo", "ImagePullBackOff"),
		"ns/starting": failingPod("r/starting", "PodInitializing"),
		"ns/fresh":    {Spec: corev1.PodSpec{InitContainers: foreign.Spec.InitContainers}},
		"ns/leaving":  leaving, "ns/foreign": foreign, "ns/running": running, "ns/second": second,
	}))
	assert.Equal(t, failures{
		"r/typo":   {pod: "ns/a", reason: "ImagePullBackOff"},
		"r/second": {pod: "ns/second", reason: "InvalidImageName"},
	}, found)
	assert.Empty(t, failuresOf(cluster.Unknown[corev1.Pod]("not read")))
}
