package certs

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Mode says where the serving certificate comes from.
type Mode string

const (
	// ModeEmbedded makes a CA in a Secret and certificates in memory. It is the default.
	ModeEmbedded Mode = "embedded"
	// ModeCertManager serves the files that a cert-manager Certificate fills;
	// its cainjector writes caBundle.
	ModeCertManager Mode = "cert-manager"
	// ModeFiles serves any pair of files; whoever makes them writes caBundle.
	ModeFiles Mode = "files"
)

// Options says which certificate to serve. Empty fields get the default named beside them.
type Options struct {
	// Mode is where the certificate comes from; default ModeEmbedded.
	Mode Mode
	// Dir is the folder that holds tls.crt and tls.key; it is watched. Needed by
	// ModeFiles and ModeCertManager, not used by ModeEmbedded.
	Dir string

	// The fields below are used by ModeEmbedded only.

	// Namespace is where warmpool runs: it holds the CA Secret and the Service. Needed.
	Namespace string
	// SecretName is the Secret that holds the CA; default "warmpool-ca".
	SecretName string
	// ServiceName is the Service in front of the webhook server; default "warmpool-webhook".
	ServiceName string
	// MutatingConfiguration and ValidatingConfiguration are the names of the
	// webhook configurations whose caBundle is kept; default "warmpool" for both.
	MutatingConfiguration, ValidatingConfiguration string
}

// Certs is the certificate source of one webhook server. Make it with New.
type Certs struct {
	opts     Options
	embedded *embedded // nil in the other modes
}

// New checks the options and returns the source. It opens no file and makes no
// API call. The error names the option to set.
func New(opts Options) (*Certs, error) {
	opts.Mode = cmp.Or(opts.Mode, ModeEmbedded)
	switch opts.Mode {
	case ModeCertManager, ModeFiles:
		if opts.Dir == "" {
			return nil, fmt.Errorf("certificates from %q need the folder of tls.crt and tls.key: set Dir", opts.Mode)
		}
		return &Certs{opts: opts}, nil
	case ModeEmbedded:
		if opts.Namespace == "" {
			return nil, errors.New("embedded certificates need the namespace of the CA Secret: set Namespace")
		}
		opts.SecretName = cmp.Or(opts.SecretName, "warmpool-ca")
		opts.ServiceName = cmp.Or(opts.ServiceName, "warmpool-webhook")
		opts.MutatingConfiguration = cmp.Or(opts.MutatingConfiguration, "warmpool")
		opts.ValidatingConfiguration = cmp.Or(opts.ValidatingConfiguration, "warmpool")
		return &Certs{opts: opts, embedded: newEmbedded(opts)}, nil
	default:
		return nil, fmt.Errorf("unknown certificate mode %q: use %q, %q or %q",
			opts.Mode, ModeEmbedded, ModeCertManager, ModeFiles)
	}
}

// Configure makes a webhook server that is built from these options serve the certificate.
func (c *Certs) Configure(server *webhook.Options) {
	if c.embedded == nil {
		server.CertDir = c.opts.Dir
		return
	}
	server.TLSOpts = append(server.TLSOpts, func(config *tls.Config) {
		config.GetCertificate = c.embedded.serving.GetCertificate
	})
}

// SetupWithManager adds what keeps certificate and caBundle up to date; it runs
// on every replica, leader or not. The manager's scheme must know Secrets and
// webhook configurations. In ModeFiles and ModeCertManager there is nothing to
// add: the webhook server watches its folder.
func (c *Certs) SetupWithManager(mgr manager.Manager) error {
	if c.embedded == nil {
		return nil
	}
	trusted, err := addCABundle(mgr, c.opts)
	if err != nil {
		return fmt.Errorf("setting up the caBundle of the webhook configurations: %w", err)
	}
	if err := c.embedded.addTo(mgr, trusted); err != nil {
		return fmt.Errorf("setting up the embedded certificate authority: %w", err)
	}
	return nil
}
