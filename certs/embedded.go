package certs

import (
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"
)

// settle is how long a replica waits before it serves a certificate of another CA: API servers learn the new caBundle by
// watch.
const settle = 10 * time.Second

// embedded signs the serving certificate of this replica, in memory, by the CA that caBundle trusts. It needs nothing
// that runs: whoever asks for the certificate has it renewed.
type embedded struct {
	names []string
	life  time.Duration

	mu        sync.Mutex
	ca        *tls.Certificate // nil until a first CA is trusted
	trustedAt time.Time
	serving   *tls.Certificate
	signedBy  *tls.Certificate
}

func newEmbedded(opts Options) *embedded {
	return &embedded{names: serviceNames(opts.ServiceName, opts.Namespace), life: leafLife}
}

// trust takes the CA that all webhook configurations hold from now on, and returns whether it is another one.
func (e *embedded) trust(ca *tls.Certificate, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ca != nil && e.ca.Leaf.Equal(ca.Leaf) {
		return false
	}
	e.ca, e.trustedAt = ca, now
	return true
}

// GetCertificate is for tls.Config. It fails until there is a CA that the webhook configurations trust.
func (e *embedded) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	switch {
	case e.ca == nil:
		return nil, errors.New("the serving certificate waits for a CA that the webhook configurations trust")
	case e.serving == nil || now.After(e.serving.Leaf.NotAfter): // needed at once
	case e.signedBy != e.ca && now.Sub(e.trustedAt) < settle: // caBundle holds both
		return e.serving, nil
	case e.signedBy == e.ca && now.Before(renewalAt(e.serving.Leaf)):
		return e.serving, nil
	}
	leaf, err := newLeaf(e.ca, e.names, e.life, now)
	if err != nil {
		return nil, fmt.Errorf("sign the serving certificate: %w", err)
	}
	e.serving, e.signedBy = leaf, e.ca
	return leaf, nil
}
