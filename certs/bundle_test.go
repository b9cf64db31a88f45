package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const day = 24 * time.Hour

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// makeCA makes a self-signed certificate that is valid from now+from to now+to.
func makeCA(t *testing.T, name string, from, to time.Duration, change ...func(*x509.Certificate)) (*x509.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(from),
		NotAfter:              now.Add(to),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	for _, f := range change {
		f(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

// issue makes a certificate that the CA signs, valid as long as the CA.
func issue(t *testing.T, ca *x509.Certificate, caKey []byte, change func(*x509.Certificate)) (*x509.Certificate, []byte) {
	t.Helper()
	pair, err := tls.X509KeyPair(pemOf(ca), caKey)
	require.NoError(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{NotBefore: ca.NotBefore, NotAfter: ca.NotAfter}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, ca, key.Public(), pair.PrivateKey)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

func pemOf(certs ...*x509.Certificate) []byte { return encodeCertificates(certs) }

func notCA(c *x509.Certificate) { c.IsCA = false }

func TestTrustedCAs(t *testing.T) {
	t.Parallel()
	ca, _ := makeCA(t, "ours", 0, 365*day)
	previous, _ := makeCA(t, "ours", -240*day, 125*day)
	older, _ := makeCA(t, "ours", -300*day, 65*day)
	expired, _ := makeCA(t, "ours", -400*day, -time.Second)
	foreign, _ := makeCA(t, "theirs", -10*day, 355*day)
	leaf, _ := makeCA(t, "ours", -day, day, notCA)
	forged, _ := makeCA(t, "ours", -2*day, 100*day)
	forged.Raw = bytes.Clone(forged.Raw)
	forged.Raw[len(forged.Raw)-1] ^= 1 // breaks the signature

	for _, test := range []struct {
		name    string
		ca      *x509.Certificate
		present []byte
		want    []*x509.Certificate
	}{
		{"first start", ca, nil, []*x509.Certificate{ca}},
		{"unchanged", ca, pemOf(ca), []*x509.Certificate{ca}},
		{"old and new during a change", ca, pemOf(previous), []*x509.Certificate{ca, previous}},
		{"stays until it expires", ca, pemOf(ca, previous), []*x509.Certificate{ca, previous}},
		{"once, although every webhook has it", ca, pemOf(previous, ca, previous, ca), []*x509.Certificate{ca, previous}},
		{"expired is dropped", ca, pemOf(expired), []*x509.Certificate{ca}},
		{"newest of the earlier ones", ca, pemOf(older, previous, expired), []*x509.Certificate{ca, previous}},
		{"foreign is dropped", ca, pemOf(foreign), []*x509.Certificate{ca}},
		{"serving certificate is dropped", ca, pemOf(leaf), []*x509.Certificate{ca}},
		{"forged is dropped", ca, pemOf(forged), []*x509.Certificate{ca}},
		{"garbage is skipped", ca, append([]byte("\x00\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), pemOf(previous)...), []*x509.Certificate{ca, previous}},
		{"replica with a stale Secret changes nothing", previous, pemOf(ca, previous), []*x509.Certificate{ca, previous}},
		{"restored older CA is kept", older, pemOf(ca, previous), []*x509.Certificate{ca, older}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, string(pemOf(test.want...)), string(pemOf(trustedCAs(test.ca, test.present, now)...)))
		})
	}
}

func TestBundlePatch(t *testing.T) {
	t.Parallel()
	webhook := func(bundle string) admissionv1.WebhookClientConfig {
		return admissionv1.WebhookClientConfig{CABundle: []byte(bundle)}
	}
	meta := metav1.ObjectMeta{Name: "warmpool", ResourceVersion: "7"}
	mutating := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionv1.MutatingWebhook{
		{Name: "a", ClientConfig: webhook("new")}, {Name: "b", ClientConfig: webhook("old")},
	}}
	validating := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionv1.ValidatingWebhook{
		{Name: "c", ClientConfig: webhook("")},
	}}

	assert.Empty(t, bundlePatch(validating, nil), "equal")
	for want, configuration := range map[string]client.Object{
		`[{"op":"replace","path":"/metadata/resourceVersion","value":"7"},` +
			`{"op":"add","path":"/webhooks/1/clientConfig/caBundle","value":"bmV3"}]`: mutating,
		`[{"op":"replace","path":"/metadata/resourceVersion","value":"7"},` +
			`{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"bmV3"}]`: validating,
	} {
		assert.JSONEq(t, want, patchJSON(t, bundlePatch(configuration, []byte("new"))))
	}
	assert.Equal(t, "new\nold\n\n", string(presentBundles([]client.Object{mutating, validating})))
}
