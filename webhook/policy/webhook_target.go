package policy

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// Applies to: warmpool's webhook configurations; see webhook-scope.
// Requires: the Service that they call, with the port, and the Certificate whose CA cert-manager is to write into them.
// Why: the API server takes references that lead nowhere. Then pods are not placed and placeholders cannot be changed, as
// while warmpool is down, but warmpool runs.
var webhookTarget = &Rule{
	ID:       "webhook-target",
	Summary:  "The Service that warmpool's webhooks call exists and has the port, and so does the Certificate that " + injectCA + " names.",
	Fix:      "Correct the name or namespace; manifests/variants/namespaces changes both everywhere.",
	Subject:  WebhookConfiguration,
	Severity: SeverityError,
	audit: func(a *Audit) {
		before := len(a.findings)
		for _, w := range a.webhooks() {
			judgeService(a, &w)
			judgeCertificate(a, &w)
		}
		// What is missing is said once, however many webhooks refer to it.
		said := map[string]bool{}
		others := slices.DeleteFunc(a.findings[before:], func(f *Finding) bool {
			again := said[f.Error.Detail]
			said[f.Error.Detail] = true
			return again
		})
		a.findings = a.findings[:before+len(others)]
	},
}

const injectCA = "cert-manager.io/inject-ca-from"

// judgeService finds that no one can answer a webhook; one with a URL has no Service.
func judgeService(a *Audit, w *webhook) {
	ref := w.client.Service
	if ref == nil {
		return
	}
	path, key, services := w.path.Child("clientConfig", "service"), ref.Namespace+"/"+ref.Name, a.facts.Services
	service, port := services.Get(key), ptr.Deref(ref.Port, 443)
	if why := services.Unreadable("Services", "Service "+key, key); why != "" {
		w.notVerified(path, "%s", why)
		return
	}
	switch {
	case service == nil:
		w.invalid(path.Child("name"), key, "there is no Service %s: the API server gets no answer, places no pod and takes no change of placeholders", key).
			orElsewhere(services, "Service %s is not among these files: without it no webhook is answered", key)
	case service.Spec.Type == corev1.ServiceTypeExternalName: // the API server asks another host, and the ports listed here count for nothing
	case !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port }):
		w.invalid(path.Child("port"), port, "Service %s has no port %d: the API server gets no answer", key, port).
			withFix("Correct the port here or in the Service.")
	}
}

// judgeCertificate finds that cert-manager cannot write caBundle.
func judgeCertificate(a *Audit, w *webhook) {
	from := w.certificate
	if from == "" {
		return
	}
	path, certificates := field.NewPath("metadata", "annotations").Key(injectCA), a.facts.Certificates
	why := certificates.Unreadable("Certificates", "Certificate "+from, from)
	switch {
	case strings.Count(from, "/") != 1:
		w.invalid(path, clip(from), "is not NAMESPACE/NAME of a Certificate: cert-manager writes no caBundle")
	case why != "":
		w.notVerified(path, "%s", why)
	case certificates.Get(from) == nil:
		w.invalid(path, from, "there is no Certificate %s: cert-manager writes no caBundle, and the API server trusts no answer", from).
			orElsewhere(certificates, "Certificate %s is not among these files: without it cert-manager writes no caBundle", from)
	}
}
