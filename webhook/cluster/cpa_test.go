package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCPAOf(t *testing.T) {
	const image = "registry.example:5000/cpa/cluster-proportional-autoscaler:v1.10.3"
	downward := []corev1.EnvVar{{Name: "MY_POD_NAMESPACE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}}
	tests := []struct {
		name      string
		container corev1.Container
		want      *CPA
	}{
		{"another program", corev1.Container{Image: "nginx", Args: []string{"--configmap=a"}}, nil},
		{"no image reference", corev1.Container{Image: "::"}, nil},
		{"behind a shell", corev1.Container{Image: image, Command: []string{"sh", "-c", "/cpa --configmap=a"}}, &CPA{Flags: map[string]string{}}},
		{"by its flags", corev1.Container{Image: "mirror/cpa:1", Command: []string{"/cpa", "--configmap", "a"}, Args: []string{"--target=deployment/x", "--configmap=b"}},
			&CPA{Flags: map[string]string{"configmap": "b", "target": "deployment/x"}}},
		{"in the namespace that the environment tells", corev1.Container{Image: image, Env: downward, Args: []string{"--configmap=$(MY_POD_NAMESPACE)"}},
			&CPA{Flags: map[string]string{"configmap": "warm"}, Namespace: "warm"}},
		{"in the namespace of its flag", corev1.Container{Image: image, Env: downward, Args: []string{"--namespace=team"}},
			&CPA{Flags: map[string]string{"namespace": "team"}, Namespace: "team"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "warm"}}
			d.Spec.Template.Spec.Containers = []corev1.Container{test.container}
			assert.Equal(t, test.want, CPAOf(d))
		})
	}
}
