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
	// MutatingConfiguration and ValidatingConfiguration are the names of the
	// webhook configurations of placeholders, whose caBundle is checked, and kept
	// in ModeEmbedded; default "warmpool" for both.
	MutatingConfiguration, ValidatingConfiguration string
	// PodsConfiguration is that of the webhook of pods; default "warmpool-pods".
	PodsConfiguration string
	// PodsOptional says that the webhook of pods need not be there: others place
	// them. Where it is, its caBundle is kept all the same.
	PodsOptional bool

	// The fields below are used by ModeEmbedded only.

	// Namespace is where warmpool runs: it holds the CA Secret and the Service. Needed.
	Namespace string
	// SecretName is the Secret that holds the CA; default "warmpool-ca".
	SecretName string
	// ServiceName is the Service in front of the webhook server; default "warmpool-webhook".
	ServiceName string
}

// Certs is the certificate source of one webhook server, and the collector of its
// metric. Make it with New.
type Certs struct {
	opts     Options
	source   certificateSource
	embedded *embedded // the source in ModeEmbedded, else nil
	files    *files    // the source in the other modes, else nil
	objects  *objects  // nil before SetupWithManager
}

// certificateSource is what makes or finds the certificate that is served.
type certificateSource interface {
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

// New checks the options and returns the source. It opens no file and makes no
// API call. The error names the option to set.
func New(opts Options) (*Certs, error) {
	opts.Mode = cmp.Or(opts.Mode, ModeEmbedded)
	opts.MutatingConfiguration = cmp.Or(opts.MutatingConfiguration, "warmpool")
	opts.ValidatingConfiguration = cmp.Or(opts.ValidatingConfiguration, "warmpool")
	opts.PodsConfiguration = cmp.Or(opts.PodsConfiguration, "warmpool-pods")
	switch opts.Mode {
	case ModeCertManager, ModeFiles:
		if opts.Dir == "" {
			return nil, fmt.Errorf("certificates from %q need the folder of tls.crt and tls.key: set Dir", opts.Mode)
		}
		f := newFiles(opts.Dir)
		return &Certs{opts: opts, source: f, files: f}, nil
	case ModeEmbedded:
		if opts.Namespace == "" {
			return nil, errors.New("embedded certificates need the namespace of the CA Secret: set Namespace")
		}
		opts.SecretName = cmp.Or(opts.SecretName, "warmpool-ca")
		opts.ServiceName = cmp.Or(opts.ServiceName, "warmpool-webhook")
		e := newEmbedded(opts)
		return &Certs{opts: opts, source: e, embedded: e}, nil
	default:
		return nil, fmt.Errorf("unknown certificate mode %q: use %q, %q or %q",
			opts.Mode, ModeEmbedded, ModeCertManager, ModeFiles)
	}
}

// Configure makes a webhook server that is built from these options serve the certificate.
func (c *Certs) Configure(server *webhook.Options) {
	server.TLSOpts = append(server.TLSOpts, func(config *tls.Config) {
		config.GetCertificate = c.source.GetCertificate
	})
}

// SetupWithManager adds what keeps the certificate up to date, and caBundle in
// ModeEmbedded; it runs on every replica, leader or not. The manager's scheme must
// know Secrets and webhook configurations.
func (c *Certs) SetupWithManager(mgr manager.Manager) error {
	var err error
	if c.objects, err = newObjects(mgr, c.opts); err != nil {
		return fmt.Errorf("setting up the watch on the webhook configurations: %w", err)
	}
	if c.embedded != nil {
		if err := c.addCABundle(mgr); err != nil {
			return fmt.Errorf("setting up the caBundle of the webhook configurations: %w", err)
		}
		return nil
	}
	if err := mgr.Add(c.files); err != nil {
		return fmt.Errorf("setting up the serving certificate: %w", err)
	}
	return nil
}

// registrations are our webhook configurations.
func (c *Certs) registrations() []registration {
	return []registration{
		{reader: c.objects.placeholders, kind: mutatingKind, name: c.opts.MutatingConfiguration},
		{reader: c.objects.placeholders, kind: validatingKind, name: c.opts.ValidatingConfiguration},
		{reader: c.objects.pods, kind: mutatingKind, name: c.opts.PodsConfiguration, optional: c.opts.PodsOptional},
	}
}
