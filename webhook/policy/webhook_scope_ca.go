package policy

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// nearExpiry is how long before its end a certificate that no one has renewed is reported: every way of making ours
// renews them weeks earlier.
const nearExpiry = 7 * 24 * time.Hour

// judgeCABundle judges the CA certificates that an API server trusts for the webhook. In files there may be none: warmpool
// or cert-manager writes them.
func judgeCABundle(w *webhook, now time.Time) {
	path := w.path.Child("clientConfig", "caBundle")
	const fix = "See warmpool's log, or that of cert-manager's cainjector, for why caBundle is not written; both write it anew by themselves."
	if len(w.client.CABundle) == 0 {
		if w.live && w.client.Service != nil {
			w.required(path, "webhook %s: without one the API server does not trust warmpool's certificate, and every call fails", w.name).withFix(fix)
		}
		return
	}
	if fault := bundleFault(w.client.CABundle, now); fault != "" {
		w.invalid(path, field.OmitValueType{}, "webhook %s: %s", w.name, fault).withFix(fix)
	}
}

// bundleFault says what is wrong with a bundle; empty: nothing.
func bundleFault(bundle []byte, now time.Time) string {
	certificates, err := parseBundle(bundle)
	if err != nil {
		return fmt.Sprintf("cannot be read: %v", err)
	}
	// While a CA is replaced the bundle holds the old one and the new: the one that lasts longest counts.
	var last *x509.Certificate
	for _, c := range certificates {
		if !c.NotBefore.After(now) && (last == nil || c.NotAfter.After(last.NotAfter)) {
			last = c
		}
	}
	switch {
	case last == nil:
		return fmt.Sprintf("no certificate of it is valid before %s", stamp(certificates[0].NotBefore))
	case now.After(last.NotAfter):
		return fmt.Sprintf("expired at %s: every call fails", stamp(last.NotAfter))
	case last.NotAfter.Sub(now) < nearExpiry:
		return fmt.Sprintf("expires at %s, it is %s now, and no one has renewed it", stamp(last.NotAfter), stamp(now))
	default:
		return ""
	}
}

func parseBundle(bundle []byte) ([]*x509.Certificate, error) {
	var certificates []*x509.Certificate
	for rest := bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(certificates)+1, err)
		}
		certificates = append(certificates, certificate)
	}
	if len(certificates) == 0 {
		return nil, errors.New("it has no PEM block of type CERTIFICATE")
	}
	return certificates, nil
}
