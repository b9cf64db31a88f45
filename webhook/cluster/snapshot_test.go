package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
)

func TestZeroFactsAreNotKnown(t *testing.T) {
	var facts cluster.Facts[corev1.Node]
	assert.False(t, facts.Known())
	assert.Equal(t, "not read", facts.Reason())
	assert.Nil(t, facts.Get("a"))
	assert.Zero(t, facts.Len())
	for range facts.All() {
		t.Fatal("zero facts yield an object")
	}
}

func TestUnknownFactsSayWhy(t *testing.T) {
	facts := cluster.Unknown[cluster.NodePool]("no NodePool CRD in the cluster")
	assert.False(t, facts.Known())
	assert.Equal(t, "no NodePool CRD in the cluster", facts.Reason())
}

func TestKnownFacts(t *testing.T) {
	a, b, c := &cluster.NodePool{Name: "a"}, &cluster.NodePool{Name: "b"}, &cluster.NodePool{Name: "c"}
	facts := cluster.Known(map[string]*cluster.NodePool{"c": c, "a": a, "b": b})
	assert.True(t, facts.Known())
	assert.Empty(t, facts.Reason())
	assert.Equal(t, 3, facts.Len())
	assert.Same(t, b, facts.Get("b"))
	assert.Nil(t, facts.Get("d"))

	var keys []string
	for key, pool := range facts.All() {
		assert.Equal(t, key, pool.Name)
		keys = append(keys, key)
	}
	assert.Equal(t, []string{"a", "b", "c"}, keys)

	for key := range facts.All() {
		assert.Equal(t, "a", key)
		break
	}
}

func TestKnownFactsOfNothing(t *testing.T) {
	facts := cluster.Known[corev1.Node](nil)
	assert.True(t, facts.Known(), "no objects is knowledge too")
	assert.Zero(t, facts.Len())
}

func TestMalformedObjectsAreNotAbsent(t *testing.T) {
	facts := cluster.Known(map[string]*cluster.NodePool{"a": {Name: "a"}})
	told := facts.WithMalformed(map[string]string{"b": "spec.template: got a value of type string"})
	assert.Empty(t, facts.Malformed("b"), "the old facts stay as they are")
	assert.Equal(t, "spec.template: got a value of type string", told.Malformed("b"))
	assert.Empty(t, told.Malformed("a"))
	assert.True(t, told.Known())
	assert.Nil(t, told.Get("b"))
	assert.NotNil(t, told.Get("a"))
}
