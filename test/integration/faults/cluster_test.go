package faults_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/await"
	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/test/harness/needs"
)

// cluster is a control plane with two replicas of warmpool behind one address, as they ship, and the example's NodePools
// and templates.
type cluster struct {
	*controlplane.ControlPlane
	admin    client.Client
	shipped  []*unstructured.Unstructured
	binary   string
	service  *service
	replicas []*install.Warmpool
	args     []string // of the replicas, beside the shipped ones
}

func newCluster(t *testing.T, overlay string) *cluster {
	t.Helper()
	needs.Check(t, needs.ControlPlane, controlplane.Ready(t.Context(), controlplane.Options{}))
	plane, err := controlplane.Start(t.Context(), controlplane.Options{Log: t.Output()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, plane.Stop()) })
	c := &cluster{ControlPlane: plane, service: newService(t), args: []string{"--shutdown-delay=1s"}}
	if *long {
		c.args = []string{"--shutdown-delay=5s"} // as it ships
	}
	c.admin, err = client.New(plane.Config, client.Options{})
	require.NoError(t, err)
	root, err := install.Root()
	require.NoError(t, err)
	crds, err := install.CRDs(root)
	require.NoError(t, err)
	local := c.overlay(t, root, overlay)
	// The Deployments of placeholders come before the webhooks, as kubectl orders them.
	require.NoError(t, plane.Apply(t.Context(), slices.Concat(crds, local, c.examples(t, root))...))
	c.binary, err = install.Build(t.Context(), root, plane.Dir)
	require.NoError(t, err)
	for range 2 {
		c.start(t)
	}
	return c
}

// overlay has replicas be started as an overlay ships them from now on, and gives its objects, with the webhooks led to the
// service.
func (c *cluster) overlay(t *testing.T, root, name string) []*unstructured.Unstructured {
	t.Helper()
	var err error
	c.shipped, err = install.Render(filepath.Join(root, "manifests", "overlays", name))
	require.NoError(t, err)
	local, err := install.Localize(c.shipped, c.service.port)
	require.NoError(t, err)
	return local
}

// examples are the NodePools, that of the GPUs with a taint of its own, and the templates.
func (c *cluster) examples(t *testing.T, root string) []*unstructured.Unstructured {
	t.Helper()
	all, err := install.Examples(root)
	require.NoError(t, err)
	for _, object := range all {
		if object.GetKind() == "NodePool" && object.GetName() == "spaces-gpu" {
			taints, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "taints")
			require.NoError(t, err)
			taints = append(taints, map[string]any{"key": dedicated, "value": "notebooks", "effect": "NoSchedule"})
			require.NoError(t, unstructured.SetNestedSlice(object.Object, taints, "spec", "template", "spec", "taints"))
		}
	}
	return all
}

// start adds a replica and waits until it is ready and in service.
func (c *cluster) start(t *testing.T) {
	t.Helper()
	port, err := controlplane.FreePort()
	require.NoError(t, err)
	w, err := install.Start(t.Context(), c.ControlPlane, c.binary, c.shipped, port, c.args...)
	require.NoError(t, err)
	c.replicas = append(c.replicas, w)
	c.service.add(w)
}

// forget takes a replica that has ended out of the cluster.
func (c *cluster) forget(w *install.Warmpool) {
	c.service.remove(w)
	c.replicas = slices.DeleteFunc(c.replicas, func(r *install.Warmpool) bool { return r == w })
}

// roll replaces a replica as a Deployment does: another first, and while it stops it is no endpoint any more.
func (c *cluster) roll(t *testing.T, w *install.Warmpool) {
	t.Helper()
	c.start(t)
	require.NoError(t, w.Stop())
	c.forget(w)
}

// alive reports whether a replica's process still runs.
func alive(w *install.Warmpool) bool { return syscall.Kill(w.PID(), 0) == nil }

// leader is the replica that leads.
func (c *cluster) leader(t *testing.T) *install.Warmpool {
	t.Helper()
	var found *install.Warmpool
	await.NoError(t, limit, "one leads", func() error {
		for _, w := range c.replicas {
			text, err := install.Metrics(t.Context(), w.MetricsURL)
			if err != nil {
				return err
			}
			if strings.Contains(text, "\nleader_election_master_status{name=\"warmpool\"} 1\n") {
				found = w
				return nil
			}
		}
		return errors.New("no one leads")
	})
	return found
}

// configurations are warmpool's, as they are now: that of pods first, where there is one.
func (c *cluster) configurations(ctx context.Context) ([]*admissionv1.MutatingWebhookConfiguration, *admissionv1.ValidatingWebhookConfiguration, error) {
	var mutating []*admissionv1.MutatingWebhookConfiguration
	for _, name := range []string{"warmpool-pods", "warmpool"} {
		configuration := &admissionv1.MutatingWebhookConfiguration{}
		switch err := c.admin.Get(ctx, client.ObjectKey{Name: name}, configuration); {
		case err == nil:
			mutating = append(mutating, configuration)
		case client.IgnoreNotFound(err) != nil:
			return nil, nil, err
		}
	}
	validating := &admissionv1.ValidatingWebhookConfiguration{}
	return mutating, validating, c.admin.Get(ctx, client.ObjectKey{Name: "warmpool"}, validating)
}

// setBundle writes caBundle of all webhooks, as somebody who is not warmpool.
func (c *cluster) setBundle(t *testing.T, bundle []byte) {
	t.Helper()
	await.NoError(t, limit, "caBundle is written", func() error {
		mutating, validating, err := c.configurations(t.Context())
		if err != nil {
			return err
		}
		var failures []error
		for _, configuration := range mutating {
			for i := range configuration.Webhooks {
				configuration.Webhooks[i].ClientConfig.CABundle = bundle
			}
			failures = append(failures, c.admin.Update(t.Context(), configuration))
		}
		for i := range validating.Webhooks {
			validating.Webhooks[i].ClientConfig.CABundle = bundle
		}
		return errors.Join(append(failures, c.admin.Update(t.Context(), validating))...)
	})
}

// failClosed has pods that warmpool cannot be asked about refused: each failure shows.
func (c *cluster) failClosed(t *testing.T) {
	t.Helper()
	await.NoError(t, limit, "pods are refused without warmpool", func() error {
		mutating, _, err := c.configurations(t.Context())
		if err != nil {
			return err
		}
		mutating[0].Webhooks[0].FailurePolicy = new(admissionv1.Fail)
		return c.admin.Update(t.Context(), mutating[0])
	})
}

// checkLogs looks for what must not be in a replica's log after all that was done to it.
func (c *cluster) checkLogs(t *testing.T) {
	t.Helper()
	for _, w := range c.replicas {
		log, err := os.ReadFile(w.Log)
		require.NoError(t, err)
		assert.NotRegexp(t, `forbidden|panic|DATA RACE`, string(log))
	}
}
