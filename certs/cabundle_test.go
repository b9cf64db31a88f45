package certs

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// patches is a client that counts what is patched and fails as told.
type patches struct {
	count int
	fail  func(client.Object) error
}

func (p *patches) reconciler(objects ...client.Object) *caBundle {
	c := fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if p.fail != nil {
				if err := p.fail(object); err != nil {
					return err
				}
			}
			p.count++
			return c.Patch(ctx, object, patch, opts...)
		},
	}).Build()
	secret := types.NamespacedName{Namespace: "warmpool-system", Name: "warmpool-ca"}
	return &caBundle{registrations: []registration{
		{reader: c, kind: mutatingKind, name: "warmpool"}, {reader: c, kind: validatingKind, name: "warmpool"},
		{reader: c, kind: mutatingKind, name: "warmpool-pods"},
	}, secrets: c, secret: secret, writer: c}
}

// fixture returns a Secret with a valid CA and two configurations without caBundle.
func fixture(t *testing.T) (*corev1.Secret, client.Object, client.Object) {
	t.Helper()
	ca, key := newCA(t, "ours", -3650*day, 36500*day)
	meta := metav1.ObjectMeta{Name: "warmpool"}
	return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "warmpool-system", Name: "warmpool-ca"},
			Data:       map[string][]byte{"tls.crt": pemOf(ca), "tls.key": key, "ca.crt": pemOf(ca)},
		},
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionv1.MutatingWebhook{{Name: "a"}, {Name: "b"}}},
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionv1.ValidatingWebhook{{Name: "c"}}}
}

func TestReconcileWritesOnlyDifferences(t *testing.T) {
	t.Parallel()
	secret, mutating, validating := fixture(t)
	var p patches
	r := p.reconciler(secret, mutating, validating)
	for range 2 {
		result, err := r.Reconcile(t.Context(), reconcile.Request{})
		require.NoError(t, err)
		assert.Greater(t, result.RequeueAfter, time.Hour, "comes back when the CA expires")
		assert.Equal(t, 2, p.count, "once for each configuration")
	}
	configurations, err := r.existing(t.Context())
	require.NoError(t, err)
	require.Len(t, configurations, 2)
	for _, configuration := range configurations {
		assert.Empty(t, bundlePatch(configuration, secret.Data["ca.crt"]))
	}
	assert.True(t, parseCertificates(secret.Data["ca.crt"])[0].Equal(r.trusted.Load()))
}

func TestReconcileWaitsForCA(t *testing.T) {
	t.Parallel()
	secret, mutating, validating := fixture(t)
	secret.Data["tls.crt"] = nil
	for _, objects := range [][]client.Object{{mutating, validating}, {secret, mutating, validating}} {
		var p patches
		r := p.reconciler(objects...)
		_, err := r.Reconcile(t.Context(), reconcile.Request{})
		require.NoError(t, err)
		assert.Zero(t, p.count)
		assert.Nil(t, r.trusted.Load())
	}
}

func TestReconcileWithoutConfigurations(t *testing.T) {
	t.Parallel()
	secret, _, _ := fixture(t)
	r := new(patches).reconciler(secret)
	_, err := r.Reconcile(t.Context(), reconcile.Request{})
	require.NoError(t, err)
	assert.NotNil(t, r.trusted.Load(), "nobody has to be told")
}

func TestReconcileFailures(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, test := range map[string]struct{ fault, want error }{
		"conflict": {fault: apierrors.NewConflict(schema.GroupResource{}, "warmpool", broken)},
		"error":    {fault: broken, want: broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			secret, mutating, validating := fixture(t)
			p := patches{fail: func(object client.Object) error {
				if _, ok := object.(*admissionv1.MutatingWebhookConfiguration); ok {
					return test.fault
				}
				return nil
			}}
			r := p.reconciler(secret, mutating, validating)
			_, err := r.Reconcile(t.Context(), reconcile.Request{})
			require.ErrorIs(t, err, test.want)
			assert.Equal(t, 1, p.count, "the other configuration is written all the same")
			assert.Nil(t, r.trusted.Load(), "not all configurations hold the CA")
		})
	}
}
