package prepull_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/prepull"
)

func TestPresent(t *testing.T) {
	spec := &corev1.PodSpec{
		InitContainers: containers("setup s", "pull-workspace-image-2 b", "pull-workspace-image a"),
		Containers:     containers("pause r.example/pause:3.10", "hold a", "other c", "odd"),
		Volumes: []corev1.Volume{
			{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "nb", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "v"}}},
			{Name: "unset", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{}}},
		},
	}
	assert.Equal(t, images("a b s c v"), prepull.Present(spec))
	assert.Empty(t, prepull.Present(&corev1.PodSpec{Containers: containers("pause pause")}))
}

func TestMissing(t *testing.T) {
	assert.Equal(t, images("b"), prepull.Missing(images("a:latest b"), images("docker.io/library/a c")))
	assert.Empty(t, prepull.Missing(nil, images("a")))
	assert.Equal(t, []string{"a"}, prepull.Missing([]string{"a"}, nil))
	assert.True(t, prepull.SameImage("Not An Image", "Not An Image"))
	assert.False(t, prepull.SameImage("a:1", "a:2"))
	assert.True(t, prepull.SameRepository("r.example/a:1", "r.example/a@sha256:0123456789012345678901234567890123456789012345678901234567890123"))
	assert.False(t, prepull.SameRepository("r.example/a:1", "r.example/b:1"))
	assert.False(t, prepull.SameRepository("Not An Image", "Not An Image"))
}
