package certs

import (
	"crypto/x509"
	"encoding/pem"
	"net"
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

// Whoever has the key of the CA can make certificates for warmpool's Service, but for no other name, no address and no CA.
func TestCASignsForItsServiceAlone(t *testing.T) {
	t.Parallel()
	ca, err := newCA("warmpool-ca", ourNames, now)
	require.NoError(t, err)
	data, err := secretData(ca)
	require.NoError(t, err)
	stolen := data[corev1.TLSPrivateKeyKey]
	trusting := func(name string, c *x509.Certificate) error {
		roots := x509.NewCertPool()
		roots.AddCert(ca.Leaf)
		_, err := c.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now})
		return err
	}
	const service = "warmpool-webhook.warmpool-system.svc"

	forged, _ := issue(t, ca.Leaf, stolen, func(c *x509.Certificate) { c.DNSNames = []string{service} })
	require.NoError(t, trusting(service, forged), "this is what the CA is for")
	for _, name := range []string{
		"kubernetes.default.svc", "webhook.other.svc", "warmpool-webhook.other.svc", "*.warmpool-system.svc", "example.com",
	} {
		forged, _ := issue(t, ca.Leaf, stolen, func(c *x509.Certificate) { c.DNSNames = []string{name} })
		assert.ErrorContains(t, trusting(name, forged), "not authorized to sign for this name", name)
	}
	for _, address := range []string{"127.0.0.1", "fd00::1"} {
		forged, _ := issue(t, ca.Leaf, stolen, func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.ParseIP(address)} })
		assert.ErrorContains(t, trusting(address, forged), "not authorized to sign for this name", address)
	}
	middle, middleKey := issue(t, ca.Leaf, stolen, func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid = true, true })
	below, _ := issue(t, middle, middleKey, func(c *x509.Certificate) { c.DNSNames = []string{service} })
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	roots.AddCert(ca.Leaf)
	intermediates.AddCert(middle)
	_, err = below.Verify(x509.VerifyOptions{DNSName: service, Roots: roots, Intermediates: intermediates, CurrentTime: now})
	require.ErrorContains(t, err, "too many intermediates")

	critical := false
	for _, extension := range ca.Leaf.Extensions {
		critical = critical || extension.Critical && extension.Id.String() == "2.5.29.30"
	}
	assert.True(t, critical, "whoever does not know name constraints trusts nothing of this CA")
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
