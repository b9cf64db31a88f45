package deploy_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"warmpool.sh/test/harness/install"
)

const policy = "mutatingadmissionpolicy/warmpool-placement"

// placedBy names what places pods, as it is in the cluster.
func placedBy(t *testing.T) string {
	t.Helper()
	return cluster(t, "get", "--ignore-not-found", "-o", "name", "mutatingwebhookconfiguration/warmpool-pods", policy,
		"mutatingadmissionpolicybinding/warmpool-placement", "mutatingadmissionpolicybinding/warmpool-placement-trial") +
		cluster(t, "get", "--ignore-not-found", "-o", "name", "-n", install.Namespace, "configmap/warmpool-placement", "configmap/warmpool-placement-trial")
}

const (
	byWebhook = "mutatingwebhookconfiguration.admissionregistration.k8s.io/warmpool-pods\n"
	byPolicy  = "mutatingadmissionpolicy.admissionregistration.k8s.io/warmpool-placement\n" +
		"mutatingadmissionpolicybinding.admissionregistration.k8s.io/warmpool-placement\n" +
		"mutatingadmissionpolicybinding.admissionregistration.k8s.io/warmpool-placement-trial\n" +
		"configmap/warmpool-placement\nconfigmap/warmpool-placement-trial\n"
)

// With another overlay the one way to place pods takes the place of the other, and nothing of it is left.
func TestDeployChangesPlacement(t *testing.T) {
	before := inventory(t)
	webhook, shipped, port := overlay(t, "embedded")
	deploy(t, webhook)
	require.Equal(t, byWebhook, placedBy(t))
	first, err := install.Start(t.Context(), cp, binary, shipped, port)
	require.NoError(t, err)

	cel, shipped, port := overlay(t, "cel")
	deployed := make(chan error, 1)
	go func() {
		_, err := makeTarget(t.Context(), "deploy", "IMG="+image, "OVERLAY="+cel)
		deployed <- err
	}()
	require.Eventually(t, func() bool { // it waits for the process that stands for the pods
		_, _, err := cp.Kubectl(t.Context(), "", "get", policy)
		return err == nil
	}, limit, step)
	require.NoError(t, first.Stop())
	second, err := install.Start(t.Context(), cp, binary, shipped, port)
	require.NoError(t, err)
	require.NoError(t, <-deployed)
	assert.Equal(t, byPolicy, placedBy(t))

	deploy(t, webhook) // the second judges the placeholders meanwhile
	assert.Equal(t, byWebhook, placedBy(t))
	require.NoError(t, second.Stop())
	undeploy(t, cel)
	assert.Equal(t, before, inventory(t))
}

// Where both mutating webhooks are in one configuration, as in earlier versions, that of pods is called all the time.
func TestDeploySplitsWebhooks(t *testing.T) {
	dir, shipped, _ := overlay(t, "embedded")
	webhooksOf := func(name string) []any {
		i := slices.IndexFunc(shipped, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == "MutatingWebhookConfiguration" && o.GetName() == name
		})
		require.GreaterOrEqual(t, i, 0)
		webhooks, _, err := unstructured.NestedSlice(shipped[i].Object, "webhooks")
		require.NoError(t, err)
		webhook, ok := webhooks[0].(map[string]any)
		require.True(t, ok)
		webhook["failurePolicy"] = "Ignore" // no one answers here
		return webhooks
	}
	joined := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": map[string]any{"name": "warmpool"},
		"webhooks": append(webhooksOf("warmpool-pods"), webhooksOf("warmpool")...),
	}}
	text, err := yaml.Marshal(joined.Object)
	require.NoError(t, err)
	_, _, err = cp.Kubectl(t.Context(), string(text), "apply", "--server-side", "--force-conflicts", "-f", "-")
	require.NoError(t, err)
	cluster(t, "patch", "mutatingwebhookconfiguration", "warmpool", "--type=json", "--field-manager=warmpool-cabundle", "-p", `[
		{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "VFJVU1RFRA=="},
		{"op": "add", "path": "/webhooks/1/clientConfig/caBundle", "value": "VFJVU1RFRA=="}]`)
	deploy(t, dir)
	names := func(name string) string {
		return cluster(t, "get", "mutatingwebhookconfiguration", name, "-o", "jsonpath={.webhooks[*].name} {.webhooks[*].clientConfig.caBundle}")
	}
	assert.Equal(t, "pods.warmpool.sh VFJVU1RFRA==", names("warmpool-pods"))
	assert.Equal(t, "placeholders.warmpool.sh VFJVU1RFRA==", names("warmpool"))
	undeploy(t, dir)
}
