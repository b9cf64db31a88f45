package manifest

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"
	clients "k8s.io/client-go/kubernetes"
)

// client-go's typed clients tell the scope of a kind: Nodes() takes no namespace, Pods(namespace) does.
func TestClusterScopedKindsAreComplete(t *testing.T) {
	cluster, namespaced := sets.New[string](), sets.New[string]()
	groups := reflect.TypeFor[clients.Interface]()
	for groupMethod := range groups.Methods() {
		for resourceMethod := range groupMethod.Type.Out(0).Methods() {
			method := resourceMethod.Type
			if method.NumOut() != 1 || method.Out(0).Kind() != reflect.Interface {
				continue
			}
			create, ok := method.Out(0).MethodByName("Create")
			if !ok || create.Type.NumIn() < 2 || create.Type.In(1).Kind() != reflect.Pointer {
				continue
			}
			kind := create.Type.In(1).Elem().Name()
			if method.NumIn() == 0 {
				cluster.Insert(kind)
			} else {
				namespaced.Insert(kind)
			}
		}
	}
	require.True(t, cluster.Has("Node") && namespaced.Has("Pod"), "the clients do not look as expected")
	assert.Empty(t, cluster.Difference(clusterScoped).UnsortedList(), "add these to clusterScoped")
	assert.Empty(t, clusterScoped.Intersection(namespaced).UnsortedList(), "these have a namespace")
	for kind := range clusterScoped {
		found := false
		for known := range builtin.AllKnownTypes() {
			found = found || known.Kind == kind && isObject(known)
		}
		assert.True(t, found, "Kubernetes has no %s", kind)
	}
}

func TestEveryServedKindPasses(t *testing.T) {
	for kind := range builtin.AllKnownTypes() {
		if _, gone := removedIn(kind); gone || !isObject(kind) {
			continue
		}
		err := check(map[string]any{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "metadata": map[string]any{"name": "a"}})
		assert.NoError(t, err)
	}
}

func TestCreationTimestampOfKubectlIsTaken(t *testing.T) {
	err := check(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"creationTimestamp": nil}})
	assert.NoError(t, err)
	assert.NoError(t, check(map[string]any{"apiVersion": "v1", "kind": "Pod"}))
}
