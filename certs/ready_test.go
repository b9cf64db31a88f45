package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
)

// fixed is a source of one certificate, or of none.
type fixed struct{ *tls.Certificate }

func (f fixed) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if f.Certificate == nil {
		return nil, errors.New("none yet")
	}
	return f.Certificate, nil
}

// filled is a cache that has what its client has.
type filled struct {
	cache.Cache
	client client.Client
}

func (f filled) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	return f.client.Get(ctx, key, object, opts...)
}

// chain is a serving certificate below an intermediate CA, and the PEM of the root.
func chain(t *testing.T) (*tls.Certificate, []byte) {
	t.Helper()
	root, rootKey := makeCA(t, "root", -day, day)
	middle, middleKey := issue(t, root, rootKey, func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid = true, true })
	return serve(t, middle, middleKey), pemOf(root)
}

// serve is a certificate for warmpool-webhook.warmpool-system.svc until a day after
// now, and the CA that signs it.
func serve(t *testing.T, ca *x509.Certificate, caKey []byte) *tls.Certificate {
	t.Helper()
	leaf, key := issue(t, ca, caKey, func(c *x509.Certificate) {
		c.DNSNames, c.NotAfter = []string{"warmpool-webhook.warmpool-system.svc"}, now.Add(day)
	})
	pair, err := tls.X509KeyPair(pemOf(leaf, ca), key)
	require.NoError(t, err)
	return &pair
}

func TestReady(t *testing.T) {
	t.Parallel()
	served, root := chain(t)
	other, _ := makeCA(t, "root", -day, day)
	expired, expiredKey := makeCA(t, "root", -2*day, -time.Second)
	outlives := serve(t, expired, expiredKey)
	service := admissionv1.WebhookClientConfig{CABundle: root, Service: &admissionv1.ServiceReference{Namespace: "warmpool-system", Name: "warmpool-webhook"}}
	with := func(change func(*admissionv1.WebhookClientConfig)) admissionv1.WebhookClientConfig {
		c := *service.DeepCopy()
		change(&c)
		return c
	}
	bundle := func(pem []byte) admissionv1.WebhookClientConfig {
		return with(func(c *admissionv1.WebhookClientConfig) { c.CABundle = pem })
	}
	address := func(url string) admissionv1.WebhookClientConfig {
		return with(func(c *admissionv1.WebhookClientConfig) { c.Service, c.URL = nil, &url })
	}
	for _, test := range []struct {
		name    string
		served  *tls.Certificate
		at      time.Duration // after now
		webhook admissionv1.WebhookClientConfig
		want    string // empty: ready
	}{
		{"trusted", served, 0, service, ""},
		{"trusted by one of two", served, 0, bundle(append(pemOf(other), root...)), ""},
		{"called by URL", served, 0, address("https://warmpool-webhook.warmpool-system.svc:9443/x"), ""},
		{"none yet", nil, 0, service, "none yet"},
		{"expired", served, day + time.Second, service, "the serving certificate expired at 2026-03-02T12:00:00Z: replace the files"},
		{"not valid yet", served, -2 * day, service, "is valid from 2026-02-28T12:00:00Z to 2026-03-02T12:00:00Z only"},
		{"expired CA", outlives, 0, bundle(pemOf(expired)), `"CN=root" is valid from 2026-02-27T12:00:00Z to 2026-03-01T11:59:59Z only`},
		{"no caBundle", served, 0, bundle(nil), "the ValidatingWebhookConfiguration warmpool does not trust the serving certificate: it has no caBundle: write the CA"},
		{"blank caBundle", served, 0, bundle([]byte("\n")), "its caBundle holds no certificate"},
		{"another CA", served, 0, bundle(pemOf(other)), "signed by unknown authority"},
		{"another name", served, 0, address("https://localhost:9443/x"), "not localhost"},
		{"no name", served, 0, address("::"), "it names no host"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := readyCerts(t, ModeFiles, test.served, service, test.webhook, service)
			err := c.acceptable(t.Context(), now.Add(test.at))
			if test.want == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, test.want)
			}
		})
	}
}

// readyCerts serves a certificate where there is a mutating webhook, then a validating one, then that of pods.
func readyCerts(t *testing.T, mode Mode, served *tls.Certificate, webhooks ...admissionv1.WebhookClientConfig) *Certs {
	t.Helper()
	c, err := New(Options{Mode: mode, Namespace: "warmpool-system", Dir: "x"})
	require.NoError(t, err)
	builder := fake.NewClientBuilder()
	for n, webhook := range webhooks {
		meta := metav1.ObjectMeta{Name: []string{"warmpool", "warmpool", "warmpool-pods"}[n]}
		if n == 1 {
			builder.WithObjects(&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionv1.ValidatingWebhook{{ClientConfig: webhook}}})
		} else {
			builder.WithObjects(&admissionv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionv1.MutatingWebhook{{ClientConfig: webhook}}})
		}
	}
	all := filled{client: builder.Build()}
	c.source, c.objects = fixed{served}, &objects{placeholders: all, pods: all}
	return c
}

// What to do is told for every mode, as is what is missing.
func TestReadySaysWhatToDo(t *testing.T) {
	t.Parallel()
	served, root := chain(t)
	for mode, want := range map[Mode]string{
		ModeEmbedded: "warmpool writes caBundle", ModeCertManager: "cainjector", ModeFiles: "write the CA",
	} {
		err := readyCerts(t, mode, served, admissionv1.WebhookClientConfig{}).acceptable(t.Context(), now)
		assert.ErrorContains(t, err, want)
		err = readyCerts(t, mode, served).acceptable(t.Context(), now)
		assert.ErrorContains(t, err, "the MutatingWebhookConfiguration warmpool does not exist: apply the manifests")
	}

	c := readyCerts(t, ModeFiles, served, admissionv1.WebhookClientConfig{CABundle: root})
	c.objects.informers = []cache.Informer{&controllertest.FakeInformer{}}
	assert.ErrorContains(t, c.acceptable(t.Context(), now), "the right to list and watch")
	c.objects.forbidden.Store(true)
	assert.NoError(t, c.acceptable(t.Context(), now), "who brings files and gives no right answers for caBundle")
	c.opts.Mode = ModeCertManager
	assert.ErrorContains(t, c.acceptable(t.Context(), now), "the right to list and watch")
}

// Who has pods placed otherwise needs no webhook of pods, whatever its caBundle is.
func TestReadyWithoutWebhookOfPods(t *testing.T) {
	t.Parallel()
	served, root := chain(t)
	trusts := admissionv1.WebhookClientConfig{CABundle: root, Service: &admissionv1.ServiceReference{Namespace: "warmpool-system", Name: "warmpool-webhook"}}
	for fault, webhooks := range map[string][]admissionv1.WebhookClientConfig{
		"the MutatingWebhookConfiguration warmpool-pods does not exist":                             {trusts, trusts},
		"the MutatingWebhookConfiguration warmpool-pods does not trust the serving certificate: it": {trusts, trusts, {}},
	} {
		c := readyCerts(t, ModeFiles, served, webhooks...)
		require.ErrorContains(t, c.acceptable(t.Context(), now), fault)
		c.opts.PodsOptional = true
		assert.NoError(t, c.acceptable(t.Context(), now))
	}
}

func TestExpiryMetric(t *testing.T) {
	t.Parallel()
	c := readyCerts(t, ModeFiles, nil)
	assert.Zero(t, testutil.CollectAndCount(c), "absent until there is a certificate")
	served, _ := chain(t)
	c.source = fixed{served}
	assert.InDelta(t, served.Leaf.NotAfter.Unix(), testutil.ToFloat64(c), 0)
	problems, err := testutil.CollectAndLint(c)
	require.NoError(t, err)
	assert.Empty(t, problems)
}
