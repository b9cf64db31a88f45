package rbac_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/await"
	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/test/harness/needs"
)

// cluster is an API server that notes what warmpool asks for, with an overlay and two replicas.
type cluster struct {
	*controlplane.ControlPlane
	admin    client.Client
	root     string
	grants   []grant
	replicas []*install.Warmpool
}

func newCluster(t *testing.T, overlay, binary string) *cluster {
	t.Helper()
	needs.Check(t, needs.ControlPlane, controlplane.Ready(t.Context(), controlplane.Options{}))
	plane, err := controlplane.Start(t.Context(), controlplane.Options{AuditPolicy: auditPolicy, Log: t.Output()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, plane.Stop()) })
	c := &cluster{ControlPlane: plane}
	c.admin, err = client.New(plane.Config, client.Options{})
	require.NoError(t, err)
	c.root, err = install.Root()
	require.NoError(t, err)
	rendered, err := install.Render(filepath.Join(c.root, "manifests", "overlays", overlay))
	require.NoError(t, err)
	c.grants, err = granted(c.root, rendered)
	require.NoError(t, err)
	if overlay == "cel" {
		rendered = append(rendered, webhookOfPods(t, c.root)...)
	}
	port, err := controlplane.FreePort()
	require.NoError(t, err)
	local, err := install.Localize(rendered, port)
	require.NoError(t, err)
	crds, err := install.CRDs(c.root)
	require.NoError(t, err)
	// No one acts on Issuers here; the Certificate is one that audits look for.
	local = slices.DeleteFunc(local, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Issuer" })
	// The demand is known a little: it is written again at once.
	demand := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	demand.SetNamespace(install.Namespace)
	demand.SetName("warmpool-demand")
	local = append(local, demand)
	require.NoError(t, plane.Apply(t.Context(), slices.Concat(crds, toAudit(t), c.examples(t, "cluster.yaml"), c.examples(t, "templates.yaml"), c.examples(t, "nodepools.yaml"), local)...))
	c.start(t, rendered, port, overlay, binary)
	return c
}

// webhookOfPods is there beside the policy while a cluster changes from one to the other; its caBundle is kept.
func webhookOfPods(t *testing.T, root string) []*unstructured.Unstructured {
	t.Helper()
	embedded, err := install.Render(filepath.Join(root, "manifests", "overlays", "embedded"))
	require.NoError(t, err)
	return slices.DeleteFunc(embedded, func(o *unstructured.Unstructured) bool { return o.GetName() != "warmpool-pods" })
}

// start runs two replicas. One starts its watches as those of older Kubernetes have to be, each with a list.
func (c *cluster) start(t *testing.T, rendered []*unstructured.Unstructured, port int, overlay, binary string) {
	t.Helper()
	older := filepath.Join(c.Dir, "older")
	script := "#!/bin/sh\nKUBE_FEATURE_WatchListClient=false exec '" + binary + "' \"$@\"\n"
	require.NoError(t, os.WriteFile(older, []byte(script), 0o700))
	args := []string{}
	if overlay == "cert-manager" {
		args = append(args, "--cert-dir="+c.certificate(t))
	}
	for _, binary := range []string{binary, older} {
		w, err := install.Start(t.Context(), c.ControlPlane, binary, rendered, port, args...)
		require.NoError(t, err)
		c.replicas = append(c.replicas, w)
		port, err = controlplane.FreePort()
		require.NoError(t, err)
	}
}

// certificate is what cert-manager would make, and trusted as cainjector would have it.
func (c *cluster) certificate(t *testing.T) (dir string) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey(install.Service+"."+install.Namespace+".svc", nil, nil)
	require.NoError(t, err)
	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
	c.setBundle(t, certificate)
	return dir
}

// setBundle writes caBundle of all webhooks.
func (c *cluster) setBundle(t *testing.T, bundle []byte) {
	t.Helper()
	c.changeWebhooks(t, func(client *admissionv1.WebhookClientConfig, _ **metav1.LabelSelector) { client.CABundle = bundle })
}

// changeWebhooks changes every webhook, by its client and its selector of objects, again where warmpool has written
// meanwhile.
func (c *cluster) changeWebhooks(t *testing.T, change func(*admissionv1.WebhookClientConfig, **metav1.LabelSelector)) {
	t.Helper()
	await.NoError(t, limit, "the webhook configurations are written", func() error {
		validating := &admissionv1.ValidatingWebhookConfiguration{}
		if err := c.admin.Get(t.Context(), client.ObjectKey{Name: "warmpool"}, validating); err != nil {
			return err
		}
		for i := range validating.Webhooks {
			change(&validating.Webhooks[i].ClientConfig, &validating.Webhooks[i].ObjectSelector)
		}
		failures := c.admin.Update(t.Context(), validating)
		for _, name := range []string{"warmpool", "warmpool-pods"} {
			mutating := &admissionv1.MutatingWebhookConfiguration{}
			if err := c.admin.Get(t.Context(), client.ObjectKey{Name: name}, mutating); err != nil {
				return err
			}
			for i := range mutating.Webhooks {
				change(&mutating.Webhooks[i].ClientConfig, &mutating.Webhooks[i].ObjectSelector)
			}
			failures = errors.Join(failures, c.admin.Update(t.Context(), mutating))
		}
		return failures
	})
}

// examples are the objects of a file of manifests/examples/fine, but for those that the overlay has.
func (c *cluster) examples(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.root, "manifests", "examples", "fine", name))
	require.NoError(t, err)
	objects, err := controlplane.Decode(bytes.NewReader(text))
	require.NoError(t, err)
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "PriorityClass"
	})
}

// askedFor waits until warmpool has asked for something that is told by its text.
func (c *cluster) askedFor(t *testing.T, what string) {
	t.Helper()
	await.NoError(t, limit, what, func() error {
		allowed, _, err := asked(c.Dir)
		if err == nil && !slices.ContainsFunc(allowed, func(r request) bool { return strings.HasPrefix(r.String(), what) }) {
			err = fmt.Errorf("warmpool has not asked for this: %s", what)
		}
		return err
	})
}
