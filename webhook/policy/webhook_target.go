package policy

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"warmpool.sh/webhook/config"
)

// Applies to: warmpool's webhook configurations; see webhook-scope.
// Requires: the Service that they call, with the port, and the Certificate whose CA cert-manager is to write into them.
// Why: the API server takes references that lead nowhere. Then pods are not placed and placeholders cannot be changed, as
// while warmpool is down, but warmpool runs.
var webhookTarget = &Rule{
	ID:        "webhook-target",
	Summary:   "The Service that warmpool's webhooks call exists and has the port, and so does the Certificate that " + injectCA + " names.",
	Fix:       "Correct the name or namespace; manifests/variants/namespaces changes both everywhere.",
	Subject:   WebhookConfiguration,
	Action:    config.Audit,
	Severity:  SeverityError,
	AuditOnly: true,
	around:    checkWebhookTargets,
}

const injectCA = "cert-manager.io/inject-ca-from"

// ownWebhook tells warmpool's webhooks by the name of their configuration or of the Service.
func ownWebhook(configuration string, client *admissionv1.WebhookClientConfig) bool {
	return configuration == PlaceholdersConfiguration || configuration == PodsConfiguration ||
		client.Service != nil && client.Service.Name == webhookService
}

// checkWebhookTargets says of each thing that is missing once that it is, however many webhooks refer to it.
func checkWebhookTargets(a *Audit) []Finding {
	var findings []Finding
	said := map[string]bool{}
	judge := func(kind, name string, annotations map[string]string, i int, client *admissionv1.WebhookClientConfig) {
		if !ownWebhook(name, client) {
			return
		}
		for _, f := range append(a.serviceFaults(client.Service, i), a.certificateFaults(annotations[injectCA])...) {
			if !said[f.Error.Detail] {
				findings = append(findings, f.about(kind, "", name, ""))
			}
			said[f.Error.Detail] = true
		}
	}
	for name, c := range a.facts.MutatingWebhooks.All() {
		for i := range c.Webhooks {
			judge("MutatingWebhookConfiguration", name, c.Annotations, i, &c.Webhooks[i].ClientConfig)
		}
	}
	for name, c := range a.facts.ValidatingWebhooks.All() {
		for i := range c.Webhooks {
			judge("ValidatingWebhookConfiguration", name, c.Annotations, i, &c.Webhooks[i].ClientConfig)
		}
	}
	return findings
}

// serviceFaults finds that no one can answer a webhook; one with a URL has no Service.
func (a *Audit) serviceFaults(service *admissionv1.ServiceReference, webhook int) []Finding {
	if service == nil {
		return nil
	}
	path := field.NewPath("webhooks").Index(webhook).Child("clientConfig", "service")
	key := service.Namespace + "/" + service.Name
	services := a.facts.Services
	there := services.Get(key)
	switch reason := services.Malformed(key); {
	case !services.Known():
		return []Finding{notVerified(path, "Services: "+services.Reason())}
	case reason != "":
		return []Finding{notVerified(path, "Service "+key+": "+reason)}
	case there == nil:
		f := invalid(path.Child("name"), key, "there is no Service "+key+": the API server gets no answer, places no pod and takes no change of placeholders")
		return []Finding{orElsewhere(f, services, "Service "+key+" is not among these files: without it no webhook is answered")}
	}
	port := ptr.Deref(service.Port, 443)
	if there.Spec.Type == corev1.ServiceTypeExternalName {
		return nil // the API server asks another host, and the ports listed here count for nothing
	}
	if !slices.ContainsFunc(there.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port }) {
		return []Finding{invalid(path.Child("port"), port, fmt.Sprintf("Service %s has no port %d: the API server gets no answer", key, port)).
			withFix("Correct the port here or in the Service.")}
	}
	return nil
}

// certificateFaults finds that cert-manager cannot write caBundle.
func (a *Audit) certificateFaults(from string) []Finding {
	if from == "" {
		return nil
	}
	path := field.NewPath("metadata", "annotations").Key(injectCA)
	certificates := a.facts.Certificates
	switch {
	case strings.Count(from, "/") != 1:
		return []Finding{invalid(path, clip(from), "is not NAMESPACE/NAME of a Certificate: cert-manager writes no caBundle")}
	case !certificates.Known():
		return []Finding{notVerified(path, "Certificates: "+certificates.Reason())}
	case certificates.Malformed(from) != "":
		return []Finding{notVerified(path, "Certificate "+from+": "+certificates.Malformed(from))}
	case certificates.Get(from) == nil:
		f := invalid(path, from, "there is no Certificate "+from+": cert-manager writes no caBundle, and the API server trusts no answer")
		return []Finding{orElsewhere(f, certificates, "Certificate "+from+" is not among these files: without it cert-manager writes no caBundle")}
	default:
		return nil
	}
}
