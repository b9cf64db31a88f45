package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/cert"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
)

const probeName = "probe.invalid"

// signer is a certificate authority.
type signer struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func newSigner(t *testing.T) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: rand.Text()}, key)
	require.NoError(t, err)
	return signer{certificate, key}
}

func (s signer) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: s.certificate.Raw})
}

// sign makes a certificate for a client, or for a server when it is told so.
func (s signer) sign(t *testing.T, name string, usage x509.ExtKeyUsage) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}, s.certificate, key.Public(), s.key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// listen does handshakes as the webhook server does them, and gives each client one byte.
func listen(t *testing.T, o tlsOptions) (address string) {
	t.Helper()
	var server ctrlwebhook.Options
	require.NoError(t, o.configure(&server, probeName, logr.Discard()))
	config := &tls.Config{NextProtos: []string{"h2"}, Certificates: []tls.Certificate{newSigner(t).sign(t, "server", x509.ExtKeyUsageServerAuth)}}
	for _, option := range server.TLSOpts {
		option(config)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, listener.Close()) })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func(c net.Conn) {
				_, _ = c.Write([]byte("."))
				_ = c.Close()
			}(connection)
		}
	}()
	return listener.Addr().String()
}

// greet is the error of a handshake; with TLS 1.3 the client learns that it is refused when it reads.
func greet(address string, client *tls.Config) (tls.ConnectionState, error) {
	client.InsecureSkipVerify = true
	connection, err := tls.Dial("tcp", address, client)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer connection.Close() //nolint:errcheck // it was only read from
	_, err = io.ReadFull(connection, make([]byte, 1))
	return connection.ConnectionState(), err
}

func TestTLSVersions(t *testing.T) {
	address := listen(t, tlsOptions{minVersion: "VersionTLS13"})
	state, err := greet(address, &tls.Config{NextProtos: []string{"h2"}})
	require.NoError(t, err)
	assert.Equal(t, "h2", state.NegotiatedProtocol)
	_, err = greet(address, &tls.Config{MaxVersion: tls.VersionTLS12})
	require.ErrorContains(t, err, "protocol version not supported")

	const suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
	address = listen(t, tlsOptions{minVersion: "VersionTLS12", cipherSuites: []string{suite}})
	state, err = greet(address, &tls.Config{MaxVersion: tls.VersionTLS12})
	require.NoError(t, err)
	assert.Equal(t, suite, tls.CipherSuiteName(state.CipherSuite))
	_, err = greet(address, &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}})
	require.ErrorContains(t, err, "handshake failure")
}

func TestTLSFlags(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.crt")
	require.NoError(t, os.WriteFile(empty, []byte("nothing"), 0o600))
	for says, o := range map[string]tlsOptions{
		`--tls-min-version: unknown tls version "1.3": use one of VersionTLS10`: {minVersion: "1.3"},
		"--tls-cipher-suites: Cipher suite AES not supported":                   {cipherSuites: []string{"AES"}},
		"--client-name says nothing without --client-ca-file":                   {clientNames: []string{"a"}},
		"--client-ca-file: open missing.crt":                                    {clientCAFile: "missing.crt"},
		"empty.crt holds no certificate in PEM":                                 {clientCAFile: empty},
	} {
		require.ErrorContains(t, o.configure(&ctrlwebhook.Options{}, probeName, logr.Discard()), says)
	}
}

// Only who shows a certificate of the CA, with the right name, is answered; who is not is counted, by the reason. The CA
// in force is that of the file now.
func TestCallers(t *testing.T) {
	ca, other := newSigner(t), newSigner(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	write := func(content []byte) { require.NoError(t, os.WriteFile(file, content, 0o600)) }
	write(ca.pem())
	address := listen(t, tlsOptions{clientCAFile: file, clientNames: []string{"api", "api2"}})
	asked := func(client *tls.Config, reason string) {
		t.Helper()
		before := sumOf(t, "warmpool_callers_refused_total", reason)
		for _, version := range []uint16{tls.VersionTLS13, tls.VersionTLS12} {
			client := client.Clone()
			client.MaxVersion = version
			_, err := greet(address, client)
			if reason == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "bad certificate")
			}
		}
		if reason != "" {
			require.Equal(t, before+2, sumOf(t, "warmpool_callers_refused_total", reason))
		}
	}
	shows := func(s signer, name string, usage x509.ExtKeyUsage) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{s.sign(t, name, usage)}}
	}
	asked(shows(ca, "api", x509.ExtKeyUsageClientAuth), "")
	asked(shows(ca, "api2", x509.ExtKeyUsageClientAuth), "")
	asked(shows(ca, "user", x509.ExtKeyUsageClientAuth), refusedName)
	asked(shows(ca, "api", x509.ExtKeyUsageServerAuth), refusedUntrusted)
	asked(shows(other, "api", x509.ExtKeyUsageClientAuth), refusedUntrusted)
	asked(&tls.Config{}, refusedNoCertificate)
	asked(&tls.Config{ServerName: probeName}, "")

	write(slices.Concat(other.pem(), ca.pem()))
	asked(shows(other, "api", x509.ExtKeyUsageClientAuth), "")
	write(other.pem())
	asked(shows(ca, "api", x509.ExtKeyUsageClientAuth), refusedUntrusted)
	for _, spoil := range []func(){func() { write([]byte("nothing")) }, func() { require.NoError(t, os.Remove(file)) }} {
		spoil()
		asked(shows(other, "api", x509.ExtKeyUsageClientAuth), "")
		asked(shows(ca, "api", x509.ExtKeyUsageClientAuth), refusedUntrusted)
	}
	write(ca.pem())
	asked(shows(ca, "api", x509.ExtKeyUsageClientAuth), "")
}
