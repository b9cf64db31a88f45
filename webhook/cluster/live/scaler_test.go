package live

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestArgument(t *testing.T) {
	words := []string{"/cluster-proportional-autoscaler", "--namespace=warm", "-configmap", "ratios", "--target="}
	for name, want := range map[string]string{"namespace": "warm", "configmap": "ratios", "target": ""} {
		got, ok := argument(words, name)
		assert.True(t, ok, name)
		assert.Equal(t, want, got, name)
	}
	_, ok := argument(words, "nodelabels")
	assert.False(t, ok)
	value, ok := argument([]string{"--configmap"}, "configmap")
	assert.True(t, ok)
	assert.Empty(t, value)
}

func TestManyNamespacesAreOne(t *testing.T) {
	names := map[string]bool{}
	for i := range maxNamespaces {
		names[fmt.Sprint(i)] = true
	}
	assert.Len(t, fewOrAll(names), maxNamespaces)
	names["one more"] = true
	assert.Equal(t, []string{""}, fewOrAll(names))
	assert.NotNil(t, fewOrAll(nil), "none is not all")
}
