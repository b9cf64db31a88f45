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
	"net"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// skew is how far the clock of an API server may be behind ours: what we sign is valid from so long ago.
	skew     = 5 * time.Minute
	caLife   = 365 * 24 * time.Hour
	leafLife = 7 * 24 * time.Hour
)

// serviceNames are the names of the Service in front of the webhook server. API servers ask for the third.
func serviceNames(service, namespace string) []string {
	inNamespace := service + "." + namespace
	return []string{service, inNamespace, inNamespace + ".svc", inNamespace + ".svc.cluster.local"}
}

// newCA makes a CA that signs for these names alone: whoever has its key can answer in the place of warmpool, and of no
// other webhook that trusts it.
func newCA(commonName string, names []string, now time.Time) (*tls.Certificate, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: commonName},
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(caLife),
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true, // no CA below it
		KeyUsage:              x509.KeyUsageCertSign,

		PermittedDNSDomainsCritical: true,
		PermittedDNSDomains:         names,
		ExcludedIPRanges: []*net.IPNet{ // names of hosts do not limit addresses
			{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)},
			{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)},
		},
	}
	return sign(template, nil)
}

// newLeaf makes a serving certificate, which does not outlive its CA.
func newLeaf(ca *tls.Certificate, names []string, life time.Duration, now time.Time) (*tls.Certificate, error) {
	template := &x509.Certificate{
		DNSNames:              names,
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(life),
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ca.Leaf.NotAfter.Before(template.NotAfter) {
		template.NotAfter = ca.Leaf.NotAfter
	}
	return sign(template, ca)
}

// sign makes a key and a certificate for it, signed by the CA, or by itself where that is nil.
func sign(template *x509.Certificate, ca *tls.Certificate) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if ca == nil {
		ca = &tls.Certificate{Leaf: template, PrivateKey: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.Leaf, key.Public(), ca.PrivateKey)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}

// renewalAt is when two thirds of the life of a certificate of ours have passed.
func renewalAt(cert *x509.Certificate) time.Time {
	return cert.NotAfter.Add(-cert.NotAfter.Sub(cert.NotBefore.Add(skew)) / 3)
}

// caOf returns the CA in a Secret, or nil when the Secret holds none that is valid and limited to names, these among them.
func caOf(secret *corev1.Secret, names []string, now time.Time) *tls.Certificate {
	certPEM := secret.Data[corev1.TLSCertKey]
	pair, err := tls.X509KeyPair(certPEM, secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil || !bytes.Equal(certPEM, secret.Data[corev1.ServiceAccountRootCAKey]) {
		return nil
	}
	if !pair.Leaf.IsCA || now.After(pair.Leaf.NotAfter) {
		return nil
	}
	for _, name := range names {
		if !slices.Contains(pair.Leaf.PermittedDNSDomains, name) {
			return nil
		}
	}
	return &pair
}

// secretData is what a Secret holds of a CA; caOf reads it.
func secretData(ca *tls.Certificate) (map[string][]byte, error) {
	key, err := x509.MarshalPKCS8PrivateKey(ca.PrivateKey)
	if err != nil {
		return nil, err
	}
	certPEM := encodeCertificates([]*x509.Certificate{ca.Leaf})
	return map[string][]byte{
		corev1.TLSCertKey:              certPEM,
		corev1.TLSPrivateKeyKey:        pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		corev1.ServiceAccountRootCAKey: certPEM,
	}, nil
}
