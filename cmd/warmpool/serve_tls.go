package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/util/cert"
	cliflag "k8s.io/component-base/cli/flag"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
)

// tlsOptions say with whom the webhook server talks, and how.
type tlsOptions struct {
	minVersion   string
	cipherSuites []string
	clientCAFile string
	clientNames  []string
}

func (o *tlsOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.minVersion, "tls-min-version", "VersionTLS13", "Oldest TLS version that the webhook server speaks: "+strings.Join(cliflag.TLSPossibleVersions(), ", "))
	flags.StringSliceVar(&o.cipherSuites, "tls-cipher-suites", nil, "Cipher suites of the webhook server up to TLS 1.2, by the names of Go's crypto/tls (default: Go's); those of TLS 1.3 cannot be chosen")
	flags.StringVar(&o.clientCAFile, "client-ca-file", "", "File with the CAs that sign the API server's client certificate; who has none from them is refused. It is read again when it changes (default: every caller is answered)")
	flags.StringSliceVar(&o.clientNames, "client-name", nil, "Common name that the API server's client certificate may have; needs --client-ca-file (default: any)")
}

// configure makes a webhook server that is built from these options keep to o. A caller that names probe as the server is
// warmpool itself.
func (o *tlsOptions) configure(server *ctrlwebhook.Options, probe string, log logr.Logger) error {
	version, err := cliflag.TLSVersion(o.minVersion)
	if err != nil {
		return fmt.Errorf("--tls-min-version: %w: use one of %s", err, strings.Join(cliflag.TLSPossibleVersions(), ", "))
	}
	suites, err := cliflag.TLSCipherSuites(o.cipherSuites)
	if err != nil {
		return fmt.Errorf("--tls-cipher-suites: %w: use some of %s", err, strings.Join(cliflag.PreferredTLSCipherNames(), ", "))
	}
	server.TLSOpts = append(server.TLSOpts, func(c *tls.Config) { c.MinVersion, c.CipherSuites = version, suites })
	if o.clientCAFile == "" {
		if len(o.clientNames) > 0 {
			return errors.New("--client-name says nothing without --client-ca-file: set both")
		}
		return nil
	}
	callers := &callers{file: o.clientCAFile, names: o.clientNames, probe: probe, log: log}
	if err := callers.read(); err != nil {
		return fmt.Errorf("--client-ca-file: %w", err)
	}
	server.TLSOpts = append(server.TLSOpts, func(c *tls.Config) {
		// RequireAndVerifyClientCert would refuse as well, but count nothing and know one set of CAs permanently.
		c.ClientAuth, c.VerifyConnection = tls.RequestClientCert, callers.verify
	})
	return nil
}

// callers refuses who is not the API server.
type callers struct {
	file  string
	names []string
	probe string
	log   logr.Logger

	mu    sync.Mutex
	text  []byte // of the file, good or bad, at the last look
	roots *x509.CertPool
}

// verify is for tls.Config: its error ends the handshake, also that of a session that is resumed.
func (c *callers) verify(connection tls.ConnectionState) error {
	if connection.ServerName == c.probe {
		return nil
	}
	reason, err := c.judge(connection.PeerCertificates)
	if err != nil {
		callersRefused.WithLabelValues(reason).Inc()
	}
	return err
}

func (c *callers) judge(chain []*x509.Certificate) (reason string, err error) {
	if len(chain) == 0 {
		return refusedNoCertificate, errors.New("the caller has no client certificate")
	}
	options := x509.VerifyOptions{Roots: c.current(), Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, intermediate := range chain[1:] {
		options.Intermediates.AddCert(intermediate)
	}
	if _, err := chain[0].Verify(options); err != nil {
		return refusedUntrusted, fmt.Errorf("the caller's client certificate is not good: %w", err)
	}
	if name := chain[0].Subject.CommonName; len(c.names) > 0 && !slices.Contains(c.names, name) {
		return refusedName, fmt.Errorf("the caller's client certificate has the name %.100q, which is none of --client-name", name)
	}
	return "", nil
}

// current gives the CAs of the file as it is now. To look at each handshake costs little beside the handshake, and there
// is no watch to lose. While the file is bad, the CAs before it count.
func (c *callers) current() *x509.CertPool {
	if err := c.read(); err != nil {
		c.log.Error(err, "client CAs not read again, those before stay in force")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.roots
}

// read reads the file if it has changed. The same bad content is an error once.
func (c *callers) read() error {
	text, err := os.ReadFile(c.file)
	if err != nil {
		text = []byte(err.Error())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Equal(text, c.text) {
		return nil
	}
	c.text = text
	if err != nil {
		return err
	}
	roots, err := cert.NewPoolFromBytes(text)
	if err != nil {
		return fmt.Errorf("%s holds no certificate in PEM: %w", c.file, err)
	}
	c.roots = roots
	c.log.Info("client CAs in force", "file", c.file)
	return nil
}
