package live

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/cluster"
)

func TestPodTemplatesAreThoseThatBuffersName(t *testing.T) {
	buffers := cluster.Known(map[string]*cluster.CapacityBuffer{
		"b/one":   {Namespace: "b", Name: "one", PodTemplate: "web"},
		"b/two":   {Namespace: "b", Name: "two", PodTemplate: "web"},
		"a/three": {Namespace: "a", Name: "three", PodTemplate: "web"},
		"a/four":  {Namespace: "a", Name: "four", ScalableKind: "Deployment", ScalableName: "web"},
	})
	assert.Equal(t, []client.ObjectKey{{Namespace: "a", Name: "web"}, {Namespace: "b", Name: "web"}}, podTemplatesOf(buffers), "each is read once")
	assert.Empty(t, podTemplatesOf(cluster.Known[cluster.CapacityBuffer](nil)), "nothing is read where there is no buffer")
}
