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

	"warmpool.sh/test/install"
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
				c.inForce(t)
				c.remove(t, &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "warmpool-pods"}})
			} else {
				c.remove(t, &admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: policyName}},
					&admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policyName}},
					&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: install.Namespace, Name: policyName}})
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

// inForce waits until the binding is for all pods: the leader has tried the policy then.
func (c *cluster) inForce(t *testing.T) {
	t.Helper()
	eventually(t, "the policy is in force", func() error {
		binding := &admissionv1.MutatingAdmissionPolicyBinding{}
		if err := c.admin.Get(t.Context(), client.ObjectKey{Name: policyName}, binding); err != nil {
			return err
		}
		if selector := binding.Spec.MatchResources.ObjectSelector; len(selector.MatchLabels)+len(selector.MatchExpressions) > 0 {
			return errors.New("for samples only")
		}
		for _, w := range c.replicas {
			if err := install.Get(t.Context(), w.HealthURL+"/readyz"); err != nil {
				return err
			}
		}
		return nil
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
	return "nobody ran meanwhile"
}

// addTaint waits until pods tolerate it.
func addTaint(t *testing.T, c *cluster, l *load) string {
	const key = "example.com/second"
	nodePool := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "karpenter.sh/v1", "kind": "NodePool"}}
	nodePool.SetName("spaces-gpu")
	eventually(t, "one leads, and the policy is current", func() error { // the one before was killed
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
	eventually(t, "pods tolerate it", func() error {
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
