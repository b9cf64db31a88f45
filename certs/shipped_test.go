package certs

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/controlplane"
	shipped "warmpool.sh/test/harness/install"
)

// repaired is how long a caBundle may be away.
const repaired = 30 * time.Second

// newShipped applies the embedded overlay as users do, without what would run, and
// gives the replicas the rights of its ServiceAccount.
func newShipped(t *testing.T, cluster *controlplane.ControlPlane) *install {
	t.Helper()
	c, err := client.New(cluster.Config, client.Options{})
	require.NoError(t, err)
	user := rest.CopyConfig(cluster.Config)
	user.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:warmpool-system:warmpool",
		Groups:   []string{"system:serviceaccounts", "system:authenticated"},
	}
	kubectl(t, cluster, overlay(t, "embedded", func(o *unstructured.Unstructured) bool {
		return o.GetKind() != "Deployment"
	}), "apply", "-f", "-")
	return &install{admin: c, user: user, Options: Options{
		Namespace: "warmpool-system", MutatingConfiguration: "warmpool", ValidatingConfiguration: "warmpool", PodsConfiguration: "warmpool-pods",
	}}
}

// overlay renders those objects of an overlay that are kept.
func overlay(t *testing.T, name string, keep func(*unstructured.Unstructured) bool) string {
	t.Helper()
	objects, err := shipped.Render(filepath.Join("..", "manifests", "overlays", name))
	require.NoError(t, err)
	var out strings.Builder
	for _, object := range slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return !keep(o) }) {
		document, err := object.MarshalJSON()
		require.NoError(t, err)
		out.Write(append(document, "\n---\n"...))
	}
	return out.String()
}

func isWebhookConfiguration(o *unstructured.Unstructured) bool {
	return strings.HasSuffix(o.GetKind(), "WebhookConfiguration")
}

func kubectl(t *testing.T, cluster *controlplane.ControlPlane, input string, args ...string) {
	t.Helper()
	_, _, err := cluster.Kubectl(t.Context(), input, args...)
	require.NoError(t, err)
}

// Three replicas start at once with no Secret. A replica that is ready is trusted,
// and all of them agree on one CA.
func testFirstStart(t *testing.T, cluster *controlplane.ControlPlane) {
	i := newShipped(t, cluster)
	errorCount := i.countErrors()
	var addresses []string
	var readies []func() error
	for range 3 {
		address, ready := i.start(t)
		addresses, readies = append(addresses, address), append(readies, ready)
	}
	for n, ready := range readies {
		require.Eventually(t, func() bool { return ready() == nil }, soon, 10*time.Millisecond)
		bundle, err := i.bundle(t.Context())
		require.NoError(t, err)
		_, err = i.dial(addresses[n], bundle)
		require.NoError(t, err, "ready before it is trusted")
	}
	ca := i.waitForBundle(t)
	for _, address := range addresses {
		_, err := i.dial(address, ca)
		require.NoError(t, err, "replicas disagree on the CA")
	}
	i.checkOwnership(t)

	configurations := overlay(t, "embedded", isWebhookConfiguration)
	for _, how := range [][]string{{"apply"}, {"apply", "--server-side"}, {"apply", "--server-side", "--field-manager=gitops"}} {
		t.Logf("kubectl %v changes nothing", how)
		kubectl(t, cluster, configurations, append(how, "-f", "-")...)
		bundle, err := i.bundle(t.Context())
		require.NoError(t, err)
		require.Equal(t, string(ca), string(bundle))
	}
	i.checkRepair(t, cluster, ca, readies[0])

	count, last := errorCount()
	assert.Zero(t, count, last)
}

// checkRepair takes caBundle away in the ways in which others do, and waits until
// it is back and the replica is ready.
func (i *install) checkRepair(t *testing.T, cluster *controlplane.ControlPlane, ca []byte, ready func() error) {
	t.Helper()
	patch := func(patch string) func(context.Context, client.Object) error {
		return func(ctx context.Context, o client.Object) error {
			return i.admin.Patch(ctx, o, client.RawPatch(types.JSONPatchType, []byte(patch)), client.FieldOwner("another"))
		}
	}
	for name, wipe := range map[string]func(context.Context, client.Object) error{
		"removed": patch(`[{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"}]`),
		"blanked": patch(`[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":"Cg=="}]`),
		"replaced": func(context.Context, client.Object) error {
			_, _, err := cluster.Kubectl(t.Context(), overlay(t, "embedded", isWebhookConfiguration), "replace", "-f", "-")
			return err
		},
	} {
		t.Logf("caBundle is %s by another writer", name)
		objects, err := i.configurations(t.Context())
		require.NoError(t, err)
		before := time.Now()
		for _, object := range objects {
			require.NoError(t, wipe(t.Context(), object))
		}
		ctx := t.Context()
		require.EventuallyWithT(t, func(t *assert.CollectT) {
			bundle, err := i.bundle(ctx)
			require.NoError(t, err)
			require.Equal(t, string(ca), string(bundle))
			require.NoError(t, ready())
		}, repaired, 50*time.Millisecond)
		t.Logf("back after %s", time.Since(before).Round(10*time.Millisecond))
	}
}

// checkOwnership makes sure that the reconciler owns caBundle and nothing else.
func (i *install) checkOwnership(t *testing.T) {
	t.Helper()
	objects, err := i.configurations(t.Context())
	require.NoError(t, err)
	for n, want := range []string{
		`{"f:webhooks": {"k:{\"name\":\"placeholders.warmpool.sh\"}": {"f:clientConfig": {"f:caBundle": {}}}}}`,
		`{"f:webhooks": {"k:{\"name\":\"placeholders.warmpool.sh\"}": {"f:clientConfig": {"f:caBundle": {}}}}}`,
		`{"f:webhooks": {"k:{\"name\":\"pods.warmpool.sh\"}": {"f:clientConfig": {"f:caBundle": {}}}}}`,
	} {
		owned := map[string]json.RawMessage{}
		for _, entry := range objects[n].GetManagedFields() {
			if entry.Operation == metav1.ManagedFieldsOperationUpdate {
				owned[entry.Manager] = entry.FieldsV1.GetRawBytes()
			}
		}
		require.Contains(t, owned, fieldManager)
		require.JSONEq(t, want, string(owned[fieldManager]))
	}
}
