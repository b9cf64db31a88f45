package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// keys holds the secrets of one control plane. The files are in its Dir.
type keys struct {
	ca    []byte // PEM
	token string // of the admin
	caFile, caKeyFile, certFile, keyFile,
	serviceAccountKeyFile, tokenFile string
}

// writeKeys makes an authority, a serving certificate that it signed, the key
// that signs ServiceAccount tokens, and the admin's token.
func writeKeys(dir string) (keys, error) {
	ca, caKey, err := newAuthority()
	if err != nil {
		return keys{}, fmt.Errorf("make the certificate authority: %w", err)
	}
	serving, servingKey, err := newServingCert(ca, caKey)
	if err != nil {
		return keys{}, fmt.Errorf("make the serving certificate: %w", err)
	}
	serviceAccountKey, err := newKey()
	if err != nil {
		return keys{}, fmt.Errorf("make the ServiceAccount key: %w", err)
	}
	k := keys{ca: pemCert(ca.Raw), token: rand.Text()}
	files := []struct {
		path *string
		name string
		data []byte
	}{
		{&k.caFile, "ca.crt", k.ca},
		{&k.caKeyFile, "ca.key", caKey.pem},
		{&k.certFile, "tls.crt", pemCert(serving)},
		{&k.keyFile, "tls.key", servingKey.pem},
		{&k.serviceAccountKeyFile, "service-account.key", serviceAccountKey.pem},
		{&k.tokenFile, "tokens.csv", fmt.Appendf(nil, "%s,admin,admin,system:masters\n", k.token)},
	}
	for _, f := range files {
		*f.path = filepath.Join(dir, f.name)
		if err := os.WriteFile(*f.path, f.data, 0o600); err != nil {
			return keys{}, fmt.Errorf("write a key of the control plane: %w", err)
		}
	}
	return k, nil
}

type key struct {
	*ecdsa.PrivateKey
	pem []byte
}

func newKey() (key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return key{}, err
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(private)
	return key{private, encoded}, err
}

func newAuthority() (*x509.Certificate, key, error) {
	caKey, err := newKey()
	if err != nil {
		return nil, key{}, err
	}
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "controlplane"}, caKey.PrivateKey)
	return ca, caKey, err
}

func newServingCert(ca *x509.Certificate, caKey key) ([]byte, key, error) {
	servingKey, err := newKey()
	if err != nil {
		return nil, key{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "kubernetes"},
		NotBefore:    ca.NotBefore,
		NotAfter:     time.Now().AddDate(1, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		// Webhooks that a test serves by this certificate have a Service in namespace baselines.
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "*.baselines.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, servingKey.Public(), caKey.PrivateKey)
	return der, servingKey, err
}

func pemCert(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
}

// writeKubeconfig writes a kubeconfig file for whoever holds token.
func writeKubeconfig(path, url string, ca []byte, token string) error {
	const name = "controlplane"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: ca}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write the kubeconfig %s: %w", path, err)
	}
	return nil
}
