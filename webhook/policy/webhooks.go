package policy

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// PlaceholdersConfiguration is the name of warmpool's webhook configurations of placeholders, of both kinds.
	PlaceholdersConfiguration = "warmpool"
	// PodsConfiguration is that of its webhook of pods, where no policy places them.
	PodsConfiguration = "warmpool-pods"

	webhookService   = "warmpool-webhook"
	webhookNamespace = "warmpool-system"
)

// The kinds of webhook configurations.
const (
	mutatingKind   = "MutatingWebhookConfiguration"
	validatingKind = "ValidatingWebhookConfiguration"
)

// webhook is what mutating and validating webhooks have in common.
type webhook struct {
	about
	name           string
	path           *field.Path
	client         *admissionv1.WebhookClientConfig
	namespaces     *metav1.LabelSelector
	timeoutSeconds *int32
	// certificate is the one whose CA cert-manager is to write into the configuration.
	certificate string
	// live tells that an API server gave it, and not a file, in which others may still write.
	live bool
}

// webhooks are warmpool's: those of its configurations, and those elsewhere that call its Service.
func (a *Audit) webhooks() []webhook {
	var found []webhook
	add := func(kind string, c *metav1.ObjectMeta, i int, w webhook) {
		if c.Name == PlaceholdersConfiguration || c.Name == PodsConfiguration || w.client.Service != nil && w.client.Service.Name == webhookService {
			w.about, w.path = a.about(kind, "", c.Name, ""), field.NewPath("webhooks").Index(i)
			w.certificate, w.live = c.Annotations[injectCA], c.UID != ""
			found = append(found, w)
		}
	}
	for _, c := range a.facts.MutatingWebhooks.All() {
		for i := range c.Webhooks {
			w := &c.Webhooks[i]
			add(mutatingKind, &c.ObjectMeta, i, webhook{name: w.Name, client: &w.ClientConfig, namespaces: w.NamespaceSelector, timeoutSeconds: w.TimeoutSeconds})
		}
	}
	for _, c := range a.facts.ValidatingWebhooks.All() {
		for i := range c.Webhooks {
			w := &c.Webhooks[i]
			add(validatingKind, &c.ObjectMeta, i, webhook{name: w.Name, client: &w.ClientConfig, namespaces: w.NamespaceSelector, timeoutSeconds: w.TimeoutSeconds})
		}
	}
	return found
}
