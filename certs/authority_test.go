package certs

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
)

var (
	ours     = Options{Namespace: "warmpool-system", SecretName: "warmpool-ca", ServiceName: "warmpool-webhook"}
	ourNames = serviceNames(ours.ServiceName, ours.Namespace)
)

const ourHost = "warmpool-webhook.warmpool-system.svc" // what an API server asks for

// checkLimits plays whoever has the key of a CA: that makes certificates for warmpool's Service, but for no other name and
// no address.
func checkLimits(t *testing.T, ca *x509.Certificate, stolen []byte) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	at := ca.NotBefore.Add(time.Hour)
	trusted := func(name string, change func(*x509.Certificate)) error {
		forged, _ := issue(t, ca, stolen, change)
		_, err := forged.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: at})
		return err
	}
	require.NoError(t, trusted(ourHost, func(c *x509.Certificate) { c.DNSNames = []string{ourHost} }), "this is what the CA is for")
	for _, name := range []string{
		"kubernetes.default.svc", "webhook.other.svc", "warmpool-webhook.other.svc", "*.warmpool-system.svc", "example.com",
	} {
		err := trusted(name, func(c *x509.Certificate) { c.DNSNames = []string{name} })
		assert.ErrorContains(t, err, "not authorized to sign for this name", name)
	}
	for _, address := range []string{"127.0.0.1", "fd00::1"} {
		err := trusted(address, func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.ParseIP(address)} })
		assert.ErrorContains(t, err, "not authorized to sign for this name", address)
	}
	critical := slices.ContainsFunc(ca.Extensions, func(e pkix.Extension) bool {
		return e.Critical && e.Id.String() == "2.5.29.30"
	})
	assert.True(t, critical, "what does not know name constraints trusts nothing of this CA")
}

func TestCASignsForItsServiceAlone(t *testing.T) {
	t.Parallel()
	ca, err := newCA("warmpool-ca", ourNames, now)
	require.NoError(t, err)
	data, err := secretData(ca)
	require.NoError(t, err)
	stolen := data[corev1.TLSPrivateKeyKey]
	checkLimits(t, ca.Leaf, stolen)

	middle, middleKey := issue(t, ca.Leaf, stolen, func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid = true, true })
	below, _ := issue(t, middle, middleKey, func(c *x509.Certificate) { c.DNSNames = []string{ourHost} })
	options := x509.VerifyOptions{DNSName: ourHost, Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: now}
	options.Roots.AddCert(ca.Leaf)
	options.Intermediates.AddCert(middle)
	_, err = below.Verify(options)
	require.ErrorContains(t, err, "too many intermediates")
	assert.Equal(t, x509.KeyUsageCertSign, ca.Leaf.KeyUsage)
}

// An API server whose clock is five minutes behind, or hours ahead, accepts a certificate at once.
func TestClocksDiffer(t *testing.T) {
	t.Parallel()
	ca, err := newCA("warmpool-ca", ourNames, now)
	require.NoError(t, err)
	leaf, err := newLeaf(ca, ourNames, leafLife, now)
	require.NoError(t, err)
	webhook := admissionv1.WebhookClientConfig{
		CABundle: pemOf(ca.Leaf), Service: &admissionv1.ServiceReference{Namespace: ours.Namespace, Name: ours.ServiceName},
	}
	for _, behind := range []time.Duration{0, 5 * time.Minute, -12 * time.Hour} {
		require.NoError(t, verify(leaf, webhook, now.Add(-behind)), behind)
	}
	require.ErrorContains(t, verify(leaf, webhook, now.Add(-6*time.Minute)), "is valid from")
	assert.Equal(t, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, leaf.Leaf.ExtKeyUsage)
	assert.Equal(t, now.Add(leafLife*2/3), renewalAt(leaf.Leaf))
	assert.Equal(t, now.Add(caLife*2/3), renewalAt(ca.Leaf))

	last, err := newLeaf(ca, ourNames, leafLife, now.Add(caLife-time.Hour))
	require.NoError(t, err)
	assert.Equal(t, ca.Leaf.NotAfter, last.Leaf.NotAfter, "no certificate outlives its CA")
}

func TestCAOf(t *testing.T) {
	t.Parallel()
	limited := func(names ...string) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.PermittedDNSDomains = names }
	}
	named := limited(ourNames...)
	ca, key := makeCA(t, "ours", -day, day, named)
	_, otherKey := makeCA(t, "ours", -day, day, named)
	expired, expiredKey := makeCA(t, "ours", -2*day, -day, named)
	leaf, leafKey := makeCA(t, "ours", -day, day, notCA)
	unlimited, unlimitedKey := makeCA(t, "ours", -day, day)
	another, anotherKey := makeCA(t, "ours", -day, day, limited(serviceNames("another", "warmpool-system")...))
	more, moreKey := makeCA(t, "ours", -day, day, limited(append(ourNames, "more")...))
	secret := func(cert, key, caCert []byte) *corev1.Secret {
		return &corev1.Secret{Data: map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": caCert}}
	}
	for _, valid := range []*corev1.Secret{secret(pemOf(ca), key, pemOf(ca)), secret(pemOf(more), moreKey, pemOf(more))} {
		got := caOf(valid, ourNames, now)
		require.NotNil(t, got)
		block, _ := pem.Decode(valid.Data["tls.crt"])
		assert.Equal(t, block.Bytes, got.Leaf.Raw)
	}

	for name, invalid := range map[string]*corev1.Secret{
		"no data":            {},
		"empty certificate":  secret(nil, key, pemOf(ca)),
		"empty key":          secret(pemOf(ca), nil, pemOf(ca)),
		"no ca.crt":          secret(pemOf(ca), key, nil),
		"other ca.crt":       secret(pemOf(ca), key, pemOf(expired)),
		"other key":          secret(pemOf(ca), otherKey, pemOf(ca)),
		"garbage":            secret([]byte("?"), []byte("?"), []byte("?")),
		"expired":            secret(pemOf(expired), expiredKey, pemOf(expired)),
		"no CA":              secret(pemOf(leaf), leafKey, pemOf(leaf)),
		"signs for any name": secret(pemOf(unlimited), unlimitedKey, pemOf(unlimited)),
		"signs for another":  secret(pemOf(another), anotherKey, pemOf(another)),
	} {
		assert.Nil(t, caOf(invalid, ourNames, now), name)
	}
}
