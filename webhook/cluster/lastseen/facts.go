package lastseen

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"warmpool.sh/webhook/cluster"
)

// Read reads the ConfigMap once, for commands that look once. Without one nothing has been seen; when it cannot be
// read, the facts are unknown and say why.
func Read(ctx context.Context, client corev1client.ConfigMapsGetter, namespace string) cluster.Facts[corev1.Node] {
	configMap, err := client.ConfigMaps(namespace).Get(ctx, Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return cluster.Known[corev1.Node](nil)
	case err != nil:
		return cluster.Unknown[corev1.Node](fmt.Sprintf("read ConfigMap %s/%s: %v", namespace, Name, err))
	}
	return Update(cluster.Facts[corev1.Node]{}, configMap.Data)
}

// Update returns the facts that the ConfigMap's data hold, by "<pool>/<instance type>", as a change of earlier facts.
// What cannot be read is left out and is malformed, by pool.
func Update(earlier cluster.Facts[corev1.Node], data map[string]string) cluster.Facts[corev1.Node] {
	m, malformed := parse(data)
	changes := map[string]*corev1.Node{}
	for key := range earlier.All() {
		changes[key] = nil
	}
	for pool, types := range m {
		for instanceType, s := range types {
			key, node := pool+"/"+instanceType, s.node()
			if equality.Semantic.DeepEqual(earlier.Get(key), node) {
				delete(changes, key)
			} else {
				changes[key] = node
			}
		}
	}
	return earlier.With(changes).WithMalformed(malformed)
}

func (s seen) node() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: s.Name, Labels: s.Labels},
		Spec:       corev1.NodeSpec{Taints: s.Taints},
		Status:     corev1.NodeStatus{Allocatable: s.Allocatable},
	}
}
