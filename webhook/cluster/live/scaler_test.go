package live

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/cluster"
)

// Audits and the reading of a live cluster recognize the same CPAs: for each of them rights are read.
func TestScalers(t *testing.T) {
	deployment := func(name string, c corev1.Container) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "warm", Name: name}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "other", Image: "other:1"}, c}
		return d
	}
	const image = "registry.example/cpa/cluster-proportional-autoscaler:v1.10.3"
	deployments := map[string]*appsv1.Deployment{}
	for _, d := range []*appsv1.Deployment{
		deployment("shell", corev1.Container{Image: image, Command: []string{"sh", "-c", "exec /cluster-proportional-autoscaler --configmap=a --target=deployment/x"}}),
		deployment("flags", corev1.Container{Image: "mirror/cpa:1", Args: []string{"--configmap", "ratios", "--target=deployment/x", "--namespace=$(ELSEWHERE)"}}),
		deployment("elsewhere", corev1.Container{Image: image, Args: []string{"--configmap=ratios", "--namespace=team"}}),
		deployment("none", corev1.Container{Image: "nginx", Args: []string{"--configmap=ratios"}}),
	} {
		deployments[d.Namespace+"/"+d.Name] = d
	}
	scalers := scalersOf(cluster.Known(deployments))
	assert.ElementsMatch(t, []scaler{
		{"warm", client.ObjectKey{Namespace: "warm"}},
		{"warm", client.ObjectKey{Namespace: "warm", Name: "ratios"}},
		{"warm", client.ObjectKey{Namespace: "team", Name: "ratios"}},
	}, scalers)
	assert.Equal(t, []client.ObjectKey{{Namespace: "team", Name: "ratios"}, {Namespace: "warm", Name: "ratios"}}, configMapsOf(scalers))
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
