package policy

import (
	"fmt"
	"maps"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
)

// Applies to: webhook configurations named warmpool or warmpool-pods, and webhooks elsewhere that call the Service
// warmpool-webhook.
// Requires: those of placeholders exist (pods may be placed by a policy instead); no webhook matches kube-system or its own namespace; timeouts of 1 to 5 s; a
// caBundle that an API server accepts now and in a week.
// Why: a webhook that judges its own namespace can keep warmpool from starting, and in kube-system the cluster; a long
// timeout holds up every pod while warmpool is away; an expired bundle fails every call.
var webhookScope = &Rule{
	ID:        "webhook-scope",
	Summary:   "warmpool's webhooks are installed, match neither kube-system nor their own namespace, time out in 1 to 5 s, and have a caBundle that is valid for another week.",
	Fix:       "Apply the webhook configurations as shipped (manifests/base/webhooks.yaml, manifests/placement/webhook).",
	Subject:   WebhookConfiguration,
	Action:    config.Audit,
	Severity:  SeverityError,
	AuditOnly: true,
	around:    checkWebhooks,
}

const (
	// PlaceholdersConfiguration is the name of warmpool's webhook configurations of placeholders, of both kinds.
	PlaceholdersConfiguration = "warmpool"
	// PodsConfiguration is that of its webhook of pods, where no policy places them.
	PodsConfiguration = "warmpool-pods"

	webhookService   = "warmpool-webhook"
	webhookNamespace = "warmpool-system"
)

// webhook is what mutating and validating webhooks have in common.
type webhook struct {
	name           string
	path           *field.Path
	client         *admissionv1.WebhookClientConfig
	namespaces     *metav1.LabelSelector
	timeoutSeconds *int32
	// live tells that an API server gave it, and not a file, in which others may still write.
	live bool
}

func checkWebhooks(a *Audit) []Finding {
	mutating := map[string][]webhook{}
	for name, c := range a.facts.MutatingWebhooks.All() {
		for i := range c.Webhooks {
			w := &c.Webhooks[i]
			mutating[name] = append(mutating[name], webhook{w.Name, field.NewPath("webhooks").Index(i), &w.ClientConfig, w.NamespaceSelector, w.TimeoutSeconds, c.UID != ""})
		}
	}
	validating := map[string][]webhook{}
	for name, c := range a.facts.ValidatingWebhooks.All() {
		for i := range c.Webhooks {
			w := &c.Webhooks[i]
			validating[name] = append(validating[name], webhook{w.Name, field.NewPath("webhooks").Index(i), &w.ClientConfig, w.NamespaceSelector, w.TimeoutSeconds, c.UID != ""})
		}
	}
	findings := append(unread("MutatingWebhookConfigurations", a.facts.MutatingWebhooks), unread("ValidatingWebhookConfigurations", a.facts.ValidatingWebhooks)...)
	if a.facts.MutatingWebhooks.Known() {
		findings = append(findings, configurationFindings(a, "MutatingWebhookConfiguration", mutating, a.facts.MutatingWebhooks.Malformed)...)
	}
	if a.facts.ValidatingWebhooks.Known() {
		findings = append(findings, configurationFindings(a, "ValidatingWebhookConfiguration", validating, a.facts.ValidatingWebhooks.Malformed)...)
	}
	return findings
}

// configurationFindings judge all configurations of one kind, of which some have to be ours. malformed says why the one
// of a name cannot be read.
func configurationFindings(a *Audit, kind string, byName map[string][]webhook, malformed func(name string) string) []Finding {
	var findings []Finding
	installed := false
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		for _, w := range byName[name] {
			if !ownWebhook(name, w.client) {
				continue
			}
			installed = installed || name != PodsConfiguration
			for _, f := range webhookFindings(a, &w) {
				findings = append(findings, f.about(kind, "", name, ""))
			}
		}
	}
	path := field.NewPath("webhooks")
	for _, name := range []string{PlaceholdersConfiguration, PodsConfiguration} {
		if reason := malformed(name); reason != "" {
			findings = append(findings, notVerified(path, reason).about(kind, "", name, ""))
			installed = true
		}
	}
	if !installed {
		f := required(path, "warmpool's webhooks are not installed: nothing is filled in and nothing denied")
		if a.facts.MutatingWebhooks.Get(PlaceholdersConfiguration) == nil && a.facts.ValidatingWebhooks.Get(PlaceholdersConfiguration) == nil {
			f = orElsewhere(f, a.facts.MutatingWebhooks, "warmpool's webhooks are not among these files: where they are not installed, nothing is filled in and nothing denied")
		}
		findings = append(findings, f.about(kind, "", PlaceholdersConfiguration, ""))
	}
	return findings
}

func webhookFindings(a *Audit, w *webhook) []Finding {
	findings := matchedNamespaces(a, w)
	if f, found := timeoutOf(w); found {
		findings = append(findings, f)
	}
	if f, found := caBundleOf(w, a.now); found {
		findings = append(findings, f)
	}
	return findings
}

func matchedNamespaces(a *Audit, w *webhook) []Finding {
	own := webhookNamespace
	if w.client.Service != nil {
		own = w.client.Service.Namespace
	}
	path := w.path.Child("namespaceSelector")
	selector := labels.Everything() // none given: all namespaces
	if w.namespaces != nil {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(w.namespaces); err != nil {
			return []Finding{invalid(path, field.OmitValueType{}, fmt.Sprintf("webhook %s: not a selector: %v", w.name, err))}
		}
	}
	var findings []Finding
	for _, name := range slices.Compact([]string{metav1.NamespaceSystem, own}) {
		set := labels.Set{}
		if namespace := a.facts.Namespaces.Get(name); namespace != nil {
			maps.Copy(set, namespace.Labels)
		}
		set[corev1.LabelMetadataName] = name
		if selector.Matches(set) {
			findings = append(findings, invalid(path, selectorText(selector), fmt.Sprintf("webhook %s matches namespace %s, whose pods must start without warmpool", w.name, name)).
				withFix(fmt.Sprintf("Exclude it: {key: %s, operator: NotIn, values: [%s, %s]}.", corev1.LabelMetadataName, metav1.NamespaceSystem, own)))
		}
	}
	return findings
}

func selectorText(selector labels.Selector) string {
	if selector.Empty() {
		return "every namespace"
	}
	return clip(selector.String())
}

func timeoutOf(w *webhook) (f Finding, found bool) {
	const least, most = 1, 5
	path := w.path.Child("timeoutSeconds")
	fix := fmt.Sprintf("Set timeoutSeconds to 3, at most %d.", most)
	switch {
	case w.timeoutSeconds == nil:
		return required(path, fmt.Sprintf("webhook %s: the API server's default is 10 s: so long each pod waits while warmpool does not answer", w.name)).withFix(fix), true
	case *w.timeoutSeconds < least || *w.timeoutSeconds > most:
		return invalid(path, *w.timeoutSeconds, fmt.Sprintf("webhook %s: not %d to %d s: so long each pod waits while warmpool does not answer", w.name, least, most)).withFix(fix), true
	default:
		return Finding{}, false
	}
}
