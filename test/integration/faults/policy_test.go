package faults_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/await"
	"warmpool.sh/test/harness/install"
)

const policyName = "warmpool-placement"

var policyFaults = []fault{
	{name: "All replicas are killed (SIGKILL)", cause: killAll},
	{name: "Replicas are replaced", cause: func(t *testing.T, c *cluster, l *load) string {
		for _, w := range slices.Clone(c.replicas) {
			l.mark()
			c.roll(t, w)
			l.steady(t)
		}
		return ""
	}},
	{name: "`caBundle` is wiped", cause: wipeBundle},
	{name: "A NodePool gets another taint", cause: addTaint},
}

// Pods are placed inside the API server, whatever becomes of warmpool; and from there to the webhook and back, each pod is
// placed, and once.
func TestPolicy(t *testing.T) {
	c := newCluster(t, "cel")
	c.inForce(t)
	for _, f := range policyFaults {
		if !f.long || *long {
			t.Run(f.name, func(t *testing.T) { c.try(t, f) })
		}
	}
	root, err := install.Root()
	require.NoError(t, err)
	for _, overlay := range []string{"embedded", "cel"} {
		t.Run("overlay "+overlay+" takes over", func(t *testing.T) {
			l := c.startLoad(t)
			l.mark()
			require.NoError(t, c.Apply(t.Context(), c.overlay(t, root, overlay)...))
			for _, w := range slices.Clone(c.replicas) {
				c.roll(t, w)
			}
			if overlay == "cel" {
				c.inForce(t) // of the bindings that are new
				c.remove(t, &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "warmpool-pods"}})
			} else {
				c.webhookAsked(t)
				for _, name := range []string{policyName, policyName + "-trial"} {
					c.remove(t, &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}},
						&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: install.Namespace, Name: name}})
				}
				c.remove(t, &admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: policyName}})
			}
			figures := l.end(t)
			t.Log(row{fault: t.Name(), figures: figures})
			assert.Zero(t, figures.unplaced)
			assert.Zero(t, figures.failed, "%v", figures.failures)
			assert.Zero(t, l.partly())
		})
	}
	c.checkLogs(t)
}

// inForce waits until warmpool says of the binding that is there that pods are placed by it, as install.sh does.
func (c *cluster) inForce(t *testing.T) {
	t.Helper()
	await.NoError(t, limit, "the policy is in force", func() error {
		binding, parameters := &admissionv1.MutatingAdmissionPolicyBinding{}, &corev1.ConfigMap{}
		if err := c.admin.Get(t.Context(), client.ObjectKey{Name: policyName}, binding); err != nil {
			return err
		}
		if err := c.admin.Get(t.Context(), client.ObjectKey{Namespace: install.Namespace, Name: policyName}, parameters); err != nil {
			return err
		}
		if parameters.Annotations["warmpool.sh/placement-in-force"] != string(binding.UID) {
			return errors.New("not yet")
		}
		for _, w := range c.replicas {
			if err := install.Get(t.Context(), w.HealthURL+"/readyz"); err != nil {
				return err
			}
		}
		return nil
	})
}

// webhookAsked waits until the API server sends pods to the replicas.
func (c *cluster) webhookAsked(t *testing.T) {
	t.Helper()
	await.NoError(t, limit, "the webhook of pods is asked", func() error {
		for _, w := range c.replicas {
			text, err := install.Metrics(t.Context(), w.MetricsURL)
			if err == nil && strings.Contains(text, `,webhook="pods"} `) {
				return nil
			}
		}
		return errors.New("not yet")
	})
}

func (c *cluster) remove(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		require.NoError(t, c.admin.Delete(t.Context(), object))
	}
}

func killAll(t *testing.T, c *cluster, l *load) string {
	for _, w := range slices.Clone(c.replicas) {
		l.mark()
		require.NoError(t, w.Kill())
		c.forget(w)
	}
	l.steady(t)
	l.steady(t)
	for range 2 {
		c.start(t)
	}
	return "no one ran meanwhile"
}

// addTaint waits until pods tolerate it.
func addTaint(t *testing.T, c *cluster, l *load) string {
	const key = "example.com/second"
	nodePool := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "karpenter.sh/v1", "kind": "NodePool"}}
	nodePool.SetName("spaces-gpu")
	await.NoError(t, limit, "one leads, and the policy is current", func() error { // the one before was killed
		text, err := install.Metrics(t.Context(), c.leader(t).MetricsURL)
		if err == nil && !hasLine(text, "warmpool_placement_policy_current 1") {
			err = errors.New("it is not current")
		}
		return err
	})
	l.mark()
	began := time.Now()
	patch := fmt.Sprintf(`[{"op": "add", "path": "/spec/template/spec/taints/-", "value": {"key": %q, "value": "notebooks", "effect": "NoSchedule"}}]`, key)
	require.NoError(t, c.admin.Patch(t.Context(), nodePool, client.RawPatch(types.JSONPatchType, []byte(patch))))
	await.NoError(t, limit, "pods tolerate it", func() error {
		pod := workspacePod()
		if err := c.admin.Create(t.Context(), pod, client.DryRunAll); err != nil {
			return err
		}
		if !tolerates(pod, key) {
			return errors.New("not yet")
		}
		return nil
	})
	return fmt.Sprintf("tolerated after %.1f s", time.Since(began).Seconds())
}

func hasLine(text, line string) bool { return strings.Contains("\n"+text, "\n"+line+"\n") }
