package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	servertls "github.com/cert-manager/cert-manager/pkg/server/tls"
	"github.com/cert-manager/cert-manager/pkg/server/tls/authority"
	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// settle is how long a renewed certificate waits before it is served: API
// servers learn a new caBundle by watch, and their clocks may be a little behind
// the moment from which the certificate is valid.
const settle = 10 * time.Second

// embedded runs cert-manager's certificate source: a CA in a Secret and a
// serving certificate in memory.
type embedded struct {
	source    *servertls.DynamicSource
	authority *authority.DynamicAuthority
	serving   handover
	log       logr.Logger
}

func newEmbedded(opts Options) *embedded {
	service := opts.ServiceName
	inNamespace := service + "." + opts.Namespace
	e := &embedded{
		source: &servertls.DynamicSource{
			DNSNames: []string{service, inNamespace, inNamespace + ".svc", inNamespace + ".svc.cluster.local"},
		},
		authority: &authority.DynamicAuthority{
			SecretNamespace: opts.Namespace,
			SecretName:      opts.SecretName,
			CommonName:      opts.SecretName,
		},
	}
	e.serving.newest = e.source.GetCertificate
	return e
}

// configure sets what is known only when there is a manager.
func (e *embedded) configure(config *rest.Config, trusted *atomic.Pointer[x509.Certificate], log logr.Logger) {
	e.authority.RESTConfig = config
	e.source.Authority = trustedAuthority{DynamicAuthority: e.authority, trusted: trusted}
	e.log = log
	if sink := log.GetSink(); sink != nil {
		e.log = log.WithSink(conflictAtDebug{sink})
	}
}

// conflictAtDebug logs a conflict for what it is: when the CA is replaced, all
// replicas try, and all but one lose. The library logs an error then.
type conflictAtDebug struct{ logr.LogSink }

// Error implements logr.LogSink.
func (s conflictAtDebug) Error(err error, msg string, keysAndValues ...any) {
	switch {
	case !apierrors.IsConflict(err):
		s.LogSink.Error(err, msg, keysAndValues...)
	case s.Enabled(1):
		s.Info(1, msg, append(keysAndValues, "reason", err.Error())...)
	}
}

// Start runs until ctx ends. The library takes its logger from the context.
func (e *embedded) Start(ctx context.Context) error {
	return e.source.Start(logr.NewContext(ctx, e.log))
}

// NeedLeaderElection returns false: every replica serves.
func (e *embedded) NeedLeaderElection() bool { return false }

// GetCertificate is for tls.Config. It fails until there is a first certificate.
func (e *embedded) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return e.serving.GetCertificate(hello)
}

// trustedAuthority signs only when the CA is in caBundle. The library alone would
// switch to a new CA at once, and the API servers would refuse its certificates
// until caBundle follows. Meanwhile the library retries every second and goes on
// serving the certificate that it has.
type trustedAuthority struct {
	*authority.DynamicAuthority
	trusted *atomic.Pointer[x509.Certificate]
}

// Sign implements servertls.Authority.
func (a trustedAuthority) Sign(template *x509.Certificate) (*x509.Certificate, error) {
	cert, err := a.DynamicAuthority.Sign(template)
	if err != nil {
		return nil, err
	}
	if ca := a.trusted.Load(); ca == nil || cert.CheckSignatureFrom(ca) != nil {
		return nil, authority.ErrCertificateNotAvailable
	}
	return cert, nil
}

// handover serves a renewed certificate when it has settled, and the one before
// it until then. caBundle trusts both.
type handover struct {
	newest func(*tls.ClientHelloInfo) (*tls.Certificate, error)

	mu      sync.Mutex
	serving *tls.Certificate
}

// GetCertificate is for tls.Config. It fails until there is a first certificate.
func (h *handover) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	newest, err := h.newest(hello)
	if err != nil {
		return nil, fmt.Errorf("the serving certificate waits for a CA that the webhook configurations trust: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if h.serving == nil || now.After(h.serving.Leaf.NotAfter) || now.Sub(newest.Leaf.NotBefore) >= settle {
		h.serving = newest
	}
	return h.serving, nil
}
