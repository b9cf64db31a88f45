package certs

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/needs"
)

// TestAPIServer runs replicas against a real API server, as a ServiceAccount that
// may do what doc.go lists, or what ships, and no more.
func TestAPIServer(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	needs.Check(t, needs.ControlPlane, controlplane.Ready(t.Context(), controlplane.Options{}))
	cluster, err := controlplane.Start(t.Context(), controlplane.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })

	t.Run("first start", func(t *testing.T) {
		t.Parallel()
		testFirstStart(t, cluster)
	})
	for name, test := range map[string]func(*testing.T, *install){
		"invalid":   testInvalidSecret,
		"untrusted": testUntrusted,
		"rotation":  testRotationLosesNothing,
		"renewal":   testRenewal,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newInstall(t, cluster.Config, "warmpool-"+name))
		})
	}
}

// An existing Secret without a certificate is replaced, by three replicas at once.
func testInvalidSecret(t *testing.T, i *install) {
	require.NoError(t, i.admin.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: "warmpool-ca"},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{"tls.crt": {}, "tls.key": {}},
	}))
	errorCount := i.countErrors()
	var addresses []string
	for range 3 {
		address, _ := i.start(t)
		addresses = append(addresses, address)
	}
	ctx := t.Context()
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		ca := i.ca(ctx, t)
		require.NotEmpty(t, ca)
		for _, address := range addresses {
			_, err := i.dial(address, ca)
			require.NoError(t, err)
		}
	}, soon, 50*time.Millisecond)
	i.waitForBundle(t)
	count, last := errorCount()
	assert.Zero(t, count, last)
}

// A replica that may not write caBundle makes a CA, but is not ready: nobody trusts it.
func testUntrusted(t *testing.T, i *install) {
	verbs := func(verbs ...string) {
		role := &rbacv1.ClusterRole{}
		require.NoError(t, i.admin.Get(t.Context(), client.ObjectKey{Name: i.MutatingConfiguration}, role))
		role.Rules[0].Verbs = verbs
		require.NoError(t, i.admin.Update(t.Context(), role))
	}
	verbs("list", "watch")
	_, ready := i.start(t)
	isReady := func() bool { return ready() == nil }
	ctx := t.Context()
	require.EventuallyWithT(t, func(t *assert.CollectT) { require.NotEmpty(t, i.ca(ctx, t)) }, soon, 50*time.Millisecond)
	require.Never(t, isReady, 3*time.Second, 50*time.Millisecond)

	verbs("list", "watch", "patch")
	require.Eventually(t, isReady, soon, 50*time.Millisecond)
}

// While the CA changes, an API server that knows caBundle as it was some seconds
// ago can verify every handshake.
func testRotationLosesNothing(t *testing.T, i *install) {
	const lag = 3 * time.Second
	addresses := make([]string, 2)
	for n := range addresses {
		addresses[n], _ = i.start(t)
	}
	before := i.waitForBundle(t)
	for _, address := range addresses {
		require.Eventually(t, func() bool { _, err := i.dial(address, before); return err == nil }, soon, 10*time.Millisecond)
	}

	require.NoError(t, i.admin.Delete(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: "warmpool-ca"},
	}))
	known := before // what the API server knows
	type version struct {
		at     time.Time
		bundle []byte
	}
	var later []version // what it will learn
	deadline := time.Now().Add(soon)
	for range time.Tick(20 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "the new CA is not in use")
		if bundle, err := i.bundle(t.Context()); err == nil { // the configurations are written one after the other
			later = append(later, version{time.Now(), bundle})
		}
		for len(later) > 0 && time.Since(later[0].at) > lag {
			known, later = later[0].bundle, later[1:]
		}
		switched := 0
		for _, address := range addresses {
			cert, err := i.dial(address, known)
			require.NoError(t, err, "a handshake is lost")
			if cert.CheckSignatureFrom(parseCertificates(before)[0]) != nil {
				switched++
			}
		}
		if switched == len(addresses) {
			break
		}
	}
	after := i.waitForBundle(t, before) // old and new
	require.NotEqual(t, string(before), string(after))
}

// A serving certificate is renewed before it expires, twice in a row.
func testRenewal(t *testing.T, i *install) {
	address, _ := i.start(t, func(c *Certs) { c.embedded.life = settle })
	ca := i.waitForBundle(t)
	serials := map[string]bool{}
	require.Eventually(t, func() bool {
		if cert, err := i.dial(address, ca); err == nil {
			serials[fmt.Sprint(cert.SerialNumber)] = true
		}
		return len(serials) == 3
	}, soon, 200*time.Millisecond)
}
