package certs

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cert-manager/cert-manager/pkg/api/util"
	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/cert-manager/cert-manager/pkg/util/pki"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipped "warmpool.sh/test/harness/install"
)

// rotate makes the CA as cert-manager does when that of before is to be renewed.
func (m *certManager) rotate(t *testing.T) {
	t.Helper()
	m.ca, m.caKey = byCertManager(t, m.find(t, "Certificate", "warmpool-webhook-ca"), nil, nil)
}

// issue fills the Secret as cert-manager does for the Certificate that is mounted.
func (m *certManager) issue(t *testing.T, notAfter time.Time) {
	t.Helper()
	leaf, key := byCertManager(t, m.certificate, m.ca, m.caKey, func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = m.ca.NotBefore, notAfter
	})
	require.NoError(t, os.WriteFile(filepath.Join(m.dir, corev1.TLSPrivateKeyKey), key, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(m.dir, corev1.TLSCertKey), pemOf(leaf), 0o600))
}

// inject writes caBundle as cainjector does where the annotation asks for it.
func (m *certManager) inject(t *testing.T, bundle []byte) {
	t.Helper()
	from := m.certificate.GetNamespace() + "/" + m.certificate.GetName()
	objects, err := m.configurations(t.Context())
	require.NoError(t, err)
	for _, object := range objects {
		require.Equal(t, from, object.GetAnnotations()["cert-manager.io/inject-ca-from"])
		for n := range clientConfigs(object) {
			patch := patchJSON(t, []jsonpatch.Operation{
				jsonpatch.NewOperation("add", fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", n), bundle),
			})
			require.NoError(t, m.admin.Patch(t.Context(), object, client.RawPatch(types.JSONPatchType, []byte(patch)), client.FieldOwner("cainjector")))
		}
	}
}

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
