package faults_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/await"
	"warmpool.sh/test/harness/install"
)

// testNobody stops all replicas and takes back what the tests changed: what goes on is by the policies that ship.
func (c *cluster) testNobody(t *testing.T) {
	for _, w := range c.replicas {
		require.NoError(t, w.Stop())
	}
	c.service.close()
	shipped, err := install.Localize(c.shipped, c.service.port)
	require.NoError(t, err)
	require.NoError(t, c.Apply(t.Context(), slices.DeleteFunc(shipped, func(o *unstructured.Unstructured) bool {
		return !strings.HasSuffix(o.GetKind(), "WebhookConfiguration")
	})...))

	t.Run("a Workspace pod is created, and not placed", func(t *testing.T) {
		await.NoError(t, limit, "the policy is in force", func() error { return c.admin.Create(t.Context(), workspacePod()) })
		pod, began := workspacePod(), time.Now()
		require.NoError(t, c.admin.Create(t.Context(), pod))
		t.Logf("after %s", time.Since(began))
		require.ErrorIs(t, placed(pod), errUnplaced)
	})
	t.Run("no one else's pod is sent", func(t *testing.T) {
		changed := func(change func(*corev1.Pod)) *corev1.Pod {
			pod := workspacePod()
			change(pod)
			return pod
		}
		c.failClosed(t) // else it would not show
		await.NoError(t, limit, "the policy is in force", func() error {
			if err := c.admin.Create(t.Context(), workspacePod()); err == nil {
				return errUnplaced
			}
			return nil
		})
		for name, pod := range map[string]*corev1.Pod{
			"of kube-system":     changed(func(p *corev1.Pod) { p.Namespace = "kube-system" }),
			"warmpool's own":     changed(func(p *corev1.Pod) { p.Namespace = install.Namespace; p.Spec = restricted() }),
			"without Workspace":  changed(func(p *corev1.Pod) { p.Labels = nil }),
			"of a placeholder":   changed(func(p *corev1.Pod) { p.Labels = map[string]string{"app": "spaces-placeholder"} }),
			"a placeholder's ns": changed(func(p *corev1.Pod) { p.Namespace = "overprovisioning"; p.Labels = nil }),
		} {
			assert.NoError(t, c.admin.Create(t.Context(), pod), name)
		}
		// The name is all that kube-system is known by.
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}
		require.NoError(t, c.admin.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace))
		assert.Equal(t, map[string]string{"kubernetes.io/metadata.name": "kube-system"}, namespace.Labels)
	})
	t.Run("a placeholder cannot be changed, and it is said why", func(t *testing.T) {
		began := time.Now()
		_, _, err := c.Kubectl(t.Context(), "", "-n", "overprovisioning", "set", "image", "deployment/spaces-placeholder-gpu", "pause=registry.k8s.io/pause:3.11")
		t.Logf("after %s: %v", time.Since(began), err)
		require.Error(t, err)
		for _, part := range []string{`failed calling webhook "placeholders.warmpool.sh"`, "warmpool-webhook.warmpool-system.svc", "connection refused"} {
			assert.ErrorContains(t, err, part)
		}
	})
	t.Run("a placeholder can be scaled and deleted", func(t *testing.T) {
		for _, command := range [][]string{
			{"scale", "deployment/spaces-placeholder-gpu", "--replicas=0"},
			{"delete", "deployment/spaces-placeholder-gpu", "--wait=false"},
		} {
			_, _, err := c.Kubectl(t.Context(), "", append([]string{"-n", "overprovisioning"}, command...)...)
			assert.NoError(t, err)
		}
	})
}

// restricted is what warmpool's own namespace lets in.
func restricted() corev1.PodSpec {
	spec := workspacePod().Spec
	spec.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	spec.Containers[0].SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	return spec
}
