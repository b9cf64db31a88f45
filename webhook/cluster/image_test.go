package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"warmpool.sh/webhook/cluster"
)

func TestIsPauseImage(t *testing.T) {
	for image, want := range map[string]bool{
		"pause": true, "registry.k8s.io/pause:3.10": true, "localhost:5000/pause": true, "r.example/eks/pause@sha256:0": true,
		"gcr.io/google_containers/pause-amd64:3.1": true,
		"": false, "r.example/pause/nb:1": false, "r.example/nb:pause": false, "paused": false, "r.example/unpause:1": false,
	} {
		assert.Equal(t, want, cluster.IsPauseImage(image), image)
	}
}
