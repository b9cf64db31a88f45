package certs

import (
	"crypto/x509"
	"encoding/pem"
	"path/filepath"
	"testing"
	"time"

	"github.com/cert-manager/cert-manager/pkg/api/util"
	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/cert-manager/cert-manager/pkg/util/pki"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	shipped "warmpool.sh/test/install"
)

// byCertManager makes what cert-manager makes of a Certificate, by its own library, and signs it by itself where ca is nil.
func byCertManager(
	t *testing.T, object *unstructured.Unstructured, ca *x509.Certificate, caKey []byte, change ...func(*x509.Certificate),
) (*x509.Certificate, []byte) {
	t.Helper()
	certificate := certificateOf(t, object)
	key, err := pki.GeneratePrivateKeyForCertificate(certificate)
	require.NoError(t, err)
	keyPEM, err := pki.EncodePrivateKey(key, certificate.Spec.PrivateKey.Encoding)
	require.NoError(t, err)
	request, err := pki.GenerateCSR(certificate, pki.WithNameConstraints(true))
	require.NoError(t, err)
	der, err := pki.EncodeCSR(request, key)
	require.NoError(t, err)
	usage, extended, err := pki.KeyUsagesForCertificateOrCertificateRequest(certificate.Spec.Usages, certificate.Spec.IsCA)
	require.NoError(t, err)
	template, err := pki.CertificateTemplateFromCSRPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		pki.CertificateTemplateOverrideDuration(util.DefaultCertDuration(certificate.Spec.Duration)),
		pki.CertificateTemplateValidateAndOverrideBasicConstraints(certificate.Spec.IsCA, nil),
		pki.CertificateTemplateValidateAndOverrideKeyUsages(usage, extended))
	require.NoError(t, err)
	for _, f := range change {
		f(template)
	}
	issuer, signer := template, key
	if ca != nil {
		issuer = ca
		signer, err = pki.DecodePrivateKeyBytes(caKey)
		require.NoError(t, err)
	}
	_, cert, err := pki.SignCertificate(template, issuer, key.Public(), signer)
	require.NoError(t, err)
	return cert, keyPEM
}

func certificateOf(t *testing.T, object *unstructured.Unstructured) *certmanager.Certificate {
	t.Helper()
	var certificate certmanager.Certificate
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &certificate, true))
	return &certificate
}

// The CA that ships for cert-manager can sign for warmpool's Service alone, gets another key each time that it is renewed,
// and is valid until all that it signed before has been renewed.
func TestCertManagerCA(t *testing.T) {
	t.Parallel()
	objects, err := shipped.Render(filepath.Join("..", "manifests", "overlays", "cert-manager"))
	require.NoError(t, err)
	m := certManager{objects: objects}
	shippedCA := m.find(t, "Certificate", "warmpool-webhook-ca")
	ca, key := byCertManager(t, shippedCA, nil, nil)
	checkLimits(t, ca, key)

	leaf, _ := byCertManager(t, m.find(t, "Certificate", "warmpool-webhook"), ca, key)
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	_, err = leaf.Verify(x509.VerifyOptions{DNSName: ourHost, Roots: roots})
	require.NoError(t, err)

	spec := certificateOf(t, shippedCA).Spec
	assert.Equal(t, certmanager.RotationPolicyAlways, spec.PrivateKey.RotationPolicy)
	assert.Greater(t, spec.RenewBefore.Duration, leaf.NotAfter.Sub(leaf.NotBefore))
	assert.Less(t, spec.RenewBefore.Duration, ca.NotAfter.Sub(ca.NotBefore)-24*time.Hour)
}
