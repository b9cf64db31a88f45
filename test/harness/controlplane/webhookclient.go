package controlplane

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// admissionConfig is the file for --admission-control-config-file; %[1]s is a
// kubeconfig whose users are named for the webhooks that they are shown to.
const admissionConfig = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: MutatingAdmissionWebhook
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: %[1]s
- name: ValidatingAdmissionWebhook
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: %[1]s
`

// writeAdmissionConfig writes what makes kube-apiserver show a client certificate
// of this common name to every webhook, and returns the file's path.
func (k keys) writeAdmissionConfig(dir, name string) (string, error) {
	certificate, key, err := k.newClientCert(name)
	if err != nil {
		return "", fmt.Errorf("make the client certificate for webhooks: %w", err)
	}
	config := clientcmdapi.NewConfig()
	config.AuthInfos["*"] = &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	kubeconfig, path := filepath.Join(dir, "webhooks.kubeconfig"), filepath.Join(dir, "admission.yaml")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		return "", fmt.Errorf("write the kubeconfig for webhooks: %w", err)
	}
	if err := os.WriteFile(path, fmt.Appendf(nil, admissionConfig, kubeconfig), 0o600); err != nil {
		return "", fmt.Errorf("write the admission configuration: %w", err)
	}
	return path, nil
}

func (k keys) newClientCert(name string, groups ...string) (certificate, keyPEM []byte, err error) {
	ca, err := tls.LoadX509KeyPair(k.caFile, k.caKeyFile)
	if err != nil {
		return nil, nil, err
	}
	clientKey, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(3),
		Subject:      pkix.Name{CommonName: name, Organization: groups},
		NotBefore:    ca.Leaf.NotBefore,
		NotAfter:     time.Now().AddDate(1, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.Leaf, clientKey.Public(), ca.PrivateKey)
	if err != nil {
		return nil, nil, err
	}
	return pemCert(der), clientKey.pem, nil
}
