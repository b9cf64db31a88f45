package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// advice is what to do about a certificate that the API servers will not accept.
var advice = map[Mode]struct{ expired, untrusted string }{
	ModeEmbedded: {
		"look into the log of warmpool for why it was not renewed",
		"warmpool writes caBundle within seconds; when it does not, its log says why",
	},
	ModeCertManager: {
		"see `kubectl describe certificate -n warmpool-system` for why cert-manager did not renew it",
		"cert-manager's cainjector writes caBundle: see that it runs and that the configuration has the annotation cert-manager.io/inject-ca-from",
	},
	ModeFiles: {
		"replace the files, they are read again without a restart",
		"write the CA that signed the certificate into caBundle of every webhook",
	},
}

// Ready is a readiness check. It fails, and says what to do, while there is no
// certificate to serve, while that has expired, and while caBundle of the webhook
// configurations does not verify it for the name that the API servers call. It
// makes no API call.
func (c *Certs) Ready(request *http.Request) error {
	return c.acceptable(request.Context(), time.Now())
}

// acceptable returns why an API server would not accept what is served now.
func (c *Certs) acceptable(ctx context.Context, now time.Time) error {
	served, err := c.source.GetCertificate(nil)
	if err != nil {
		return err
	}
	advice := advice[c.opts.Mode]
	if now.After(served.Leaf.NotAfter) {
		return fmt.Errorf("the serving certificate expired at %s: %s", stamp(served.Leaf.NotAfter), advice.expired)
	}
	if c.objects == nil || !c.objects.synced() {
		return c.unread()
	}
	all, err := read(ctx, c.registrations())
	if err != nil {
		return fmt.Errorf("read the webhook configurations: %w", err)
	}
	for _, configuration := range all {
		if configuration.optional {
			continue
		}
		if configuration.object == nil {
			return fmt.Errorf("the %s %s does not exist: apply the manifests", configuration.kind, configuration.name)
		}
		for _, webhook := range clientConfigs(configuration.object) {
			if err := verify(served, webhook, now); err != nil {
				return fmt.Errorf("the %s %s does not trust the serving certificate: %w: %s", configuration.kind, configuration.name, err, advice.untrusted)
			}
		}
	}
	return nil
}

// unread says what it means that the webhook configurations were not read. Who
// brings files and gives no right to read caBundle answers for caBundle.
func (c *Certs) unread() error {
	if c.opts.Mode == ModeFiles && c.objects != nil && c.objects.forbidden.Load() {
		return nil
	}
	return errors.New("the webhook configurations have not been read yet: when this stays, give warmpool's ServiceAccount the right to list and watch them")
}

// verify does what the API server does with the certificate of this webhook.
func verify(served *tls.Certificate, webhook admissionv1.WebhookClientConfig, now time.Time) error {
	if len(webhook.CABundle) == 0 {
		return errors.New("it has no caBundle")
	}
	name := serverName(webhook)
	if name == "" {
		return errors.New("it names no host in clientConfig") // an empty name would match every certificate
	}
	options := x509.VerifyOptions{
		DNSName: name, CurrentTime: now, Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(),
	}
	if !options.Roots.AppendCertsFromPEM(webhook.CABundle) {
		return errors.New("its caBundle holds no certificate")
	}
	for _, der := range served.Certificate[1:] {
		if intermediate, err := x509.ParseCertificate(der); err == nil {
			options.Intermediates.AddCert(intermediate)
		}
	}
	_, err := served.Leaf.Verify(options)
	if invalid := (x509.CertificateInvalidError{}); errors.As(err, &invalid) && invalid.Reason == x509.Expired {
		// The library tells the present time too, but the same fault shall read the same each time.
		return fmt.Errorf("%q is valid from %s to %s only", invalid.Cert.Subject, stamp(invalid.Cert.NotBefore), stamp(invalid.Cert.NotAfter))
	}
	return err
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// serverName is the name that the API server expects in the certificate.
func serverName(webhook admissionv1.WebhookClientConfig) string {
	if service := webhook.Service; service != nil {
		return service.Name + "." + service.Namespace + ".svc"
	}
	if webhook.URL != nil {
		if address, err := url.Parse(*webhook.URL); err == nil {
			return address.Hostname()
		}
	}
	return ""
}

var expiry = prometheus.NewDesc("warmpool_certificate_expiry_timestamp_seconds",
	"When the certificate that is served expires, in Unix seconds. Absent until there is one.", nil, nil)

// Describe implements prometheus.Collector.
func (c *Certs) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- expiry }

// Collect implements prometheus.Collector. It gives
// warmpool_certificate_expiry_timestamp_seconds of the certificate that is served.
func (c *Certs) Collect(metrics chan<- prometheus.Metric) {
	if served, err := c.source.GetCertificate(nil); err == nil {
		metrics <- prometheus.MustNewConstMetric(expiry, prometheus.GaugeValue, float64(served.Leaf.NotAfter.Unix()))
	}
}
