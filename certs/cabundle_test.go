package certs

import (
	"cmp"
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

// patches is a client that counts what is patched, and fails as it is asked to.
type patches struct {
	count int
	fail  func(client.Object) error
}

func (p *patches) failure(object client.Object) error {
	if p.fail == nil {
		return nil
	}
	return p.fail(object)
}

func (p *patches) reconciler(objects ...client.Object) *caBundle {
	c := fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			return cmp.Or(p.failure(object), c.Create(ctx, object, opts...))
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.UpdateOption) error {
			return cmp.Or(p.failure(object), c.Update(ctx, object, opts...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := p.failure(object); err != nil {
				return err
			}
			p.count++
			return c.Patch(ctx, object, patch, opts...)
		},
	}).Build()
	secret := types.NamespacedName{Namespace: "warmpool-system", Name: "warmpool-ca"}
	return &caBundle{registrations: []registration{
		{reader: c, kind: mutatingKind, name: "warmpool"}, {reader: c, kind: validatingKind, name: "warmpool"},
		{reader: c, kind: mutatingKind, name: "warmpool-pods"},
	}, secrets: c, secret: secret, writer: c, embedded: newEmbedded(ours)}
}

// secretOf is the Secret with a CA of ours, made so long ago.
func secretOf(t *testing.T, ago time.Duration) *corev1.Secret {
	t.Helper()
	ca, err := newCA("warmpool-ca", ourNames, time.Now().Add(-ago))
	require.NoError(t, err)
	data, err := secretData(ca)
	require.NoError(t, err)
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "warmpool-system", Name: "warmpool-ca"}, Data: data}
}

// fixture returns a Secret with a valid CA and two configurations without caBundle.
func fixture(t *testing.T) (*corev1.Secret, client.Object, client.Object) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "warmpool"}
	return secretOf(t, 0),
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
		assert.Equal(t, time.Hour, result.RequeueAfter, "comes back to see how old the CA is")
		assert.Equal(t, 2, p.count, "once for each configuration")
	}
	configurations, err := r.existing(t.Context())
	require.NoError(t, err)
	require.Len(t, configurations, 2)
	for _, configuration := range configurations {
		assert.Empty(t, bundlePatch(configuration, secret.Data["ca.crt"]))
	}
	assert.True(t, parseCertificates(secret.Data["ca.crt"])[0].Equal(r.embedded.ca.Leaf))
}

// Where there is no CA that can be used, or it is old, Reconcile makes one, and the next one, which the watch of the Secret
// brings about, writes it into caBundle. An old CA stays trusted until then, and where the Secret cannot be written.
func TestReconcileReplacesCA(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		ago     time.Duration // negative: no data
		fault   error
		want    error
		patches int // by the first Reconcile
	}{
		"no CA":                       {ago: -1},
		"expired":                     {ago: caLife + time.Second},
		"old":                         {ago: caLife*2/3 + time.Second, patches: 2},
		"another replica was faster":  {ago: -1, fault: apierrors.NewConflict(schema.GroupResource{}, "warmpool-ca", broken)},
		"old, another was faster":     {ago: caLife - time.Hour, fault: apierrors.NewConflict(schema.GroupResource{}, "warmpool-ca", broken), patches: 2},
		"no CA that can be written":   {ago: -1, fault: broken, want: broken},
		"old, and cannot be replaced": {ago: caLife - time.Hour, fault: broken, want: broken, patches: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, mutating, validating := fixture(t)
			secret := secretOf(t, max(test.ago, 0))
			if test.ago < 0 {
				secret.Data = nil
			}
			p := patches{fail: func(object client.Object) error {
				if _, ok := object.(*corev1.Secret); ok {
					return test.fault
				}
				return nil
			}}
			r := p.reconciler(secret, mutating, validating)
			_, err := r.Reconcile(t.Context(), reconcile.Request{})
			require.ErrorIs(t, err, test.want)
			assert.Equal(t, test.patches, p.count)
			if test.fault != nil {
				return
			}
			_, err = r.Reconcile(t.Context(), reconcile.Request{})
			require.NoError(t, err)
			assert.Equal(t, test.patches+2, p.count)
			require.NotNil(t, r.embedded.ca)
			assert.True(t, time.Now().Before(renewalAt(r.embedded.ca.Leaf)))
			replaced := &corev1.Secret{}
			require.NoError(t, r.secrets.Get(t.Context(), r.secret, replaced))
			assert.True(t, caOf(replaced, ourNames, time.Now()).Leaf.Equal(r.embedded.ca.Leaf))
		})
	}
}

// Of replicas that start together with no Secret, one creates it and the others wait for it.
func TestReconcileCreatesSecret(t *testing.T) {
	t.Parallel()
	var p patches
	r := p.reconciler()
	_, err := r.Reconcile(t.Context(), reconcile.Request{})
	require.NoError(t, err)
	first := &corev1.Secret{}
	require.NoError(t, r.secrets.Get(t.Context(), r.secret, first))
	require.NoError(t, r.unlessFaster(t.Context(), r.replaceCA(t.Context(), &corev1.Secret{}, time.Now())))
	second := &corev1.Secret{}
	require.NoError(t, r.secrets.Get(t.Context(), r.secret, second))
	assert.Equal(t, first.Data, second.Data)
}

func TestReconcileWithoutConfigurations(t *testing.T) {
	t.Parallel()
	secret, _, _ := fixture(t)
	r := new(patches).reconciler(secret)
	_, err := r.Reconcile(t.Context(), reconcile.Request{})
	require.NoError(t, err)
	assert.NotNil(t, r.embedded.ca, "no webhook has to trust it first")
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
			assert.Nil(t, r.embedded.ca, "not all configurations hold the CA")
		})
	}
}
