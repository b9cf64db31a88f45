package apiserver_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"

	"warmpool.sh/test/harness/install"
)

// warmpool's own pods are admitted where Pod Security enforces restricted, and no others.
func TestPodSecurity(t *testing.T) {
	root, err := install.Root()
	require.NoError(t, err)
	shipped, err := install.Render(filepath.Join(root, "manifests", "overlays", "embedded"))
	require.NoError(t, err)
	u := newUser(t)
	for _, object := range shipped {
		if object.GetKind() != "Deployment" || object.GetName() != install.Deployment {
			continue
		}
		var deployment appsv1.Deployment
		require.NoError(t, kruntime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment))
		pod := &corev1.Pod{ObjectMeta: deployment.Spec.Template.ObjectMeta, Spec: deployment.Spec.Template.Spec}
		pod.GenerateName = "warmpool-"
		pods := u.CoreV1().Pods(install.Namespace)
		_, err := pods.Create(t.Context(), pod, dryRun)
		require.NoError(t, err)
		pod.Spec.Containers[0].SecurityContext.Capabilities = nil
		_, err = pods.Create(t.Context(), pod, dryRun)
		assert.ErrorContains(t, err, `violates PodSecurity "restricted:latest"`)
		return
	}
	t.Fatal("the manifests hold no Deployment of warmpool")
}
