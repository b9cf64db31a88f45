package policy

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Applies to: webhook configurations named warmpool or warmpool-pods, and webhooks elsewhere that call the Service
// warmpool-webhook.
// Requires: those of placeholders exist (pods may be placed by a policy instead); no webhook matches kube-system or its own namespace; timeouts of 1 to 5 s; a
// caBundle that an API server accepts now and in a week.
// Why: a webhook that judges its own namespace can keep warmpool from starting, and in kube-system the cluster; a long
// timeout holds up every pod while warmpool is away; an expired bundle fails every call.
var webhookScope = &Rule{
	ID:       "webhook-scope",
	Summary:  "warmpool's webhooks are installed, match neither kube-system nor their own namespace, time out in 1 to 5 s, and have a caBundle that is valid for another week.",
	Fix:      "Apply the webhook configurations as shipped (manifests/base/webhooks.yaml, manifests/placement/webhook).",
	Subject:  WebhookConfiguration,
	Severity: SeverityError,
	audit: func(a *Audit) {
		a.unread("MutatingWebhookConfigurations", a.facts.MutatingWebhooks)
		a.unread("ValidatingWebhookConfigurations", a.facts.ValidatingWebhooks)
		webhooks := a.webhooks()
		for i := range webhooks {
			w := &webhooks[i]
			judgeNamespaces(a, w)
			judgeTimeout(w)
			judgeCABundle(w, a.now)
		}
		judgeInstalled(a, mutatingKind, a.facts.MutatingWebhooks, webhooks)
		judgeInstalled(a, validatingKind, a.facts.ValidatingWebhooks, webhooks)
	},
}

// judgeInstalled judges whether some webhooks of the kind are there.
func judgeInstalled(a *Audit, of string, facts kind, webhooks []webhook) {
	if !facts.Known() {
		return
	}
	path := field.NewPath("webhooks")
	installed := slices.ContainsFunc(webhooks, func(w webhook) bool { return w.Kind == of && w.Name != PodsConfiguration })
	for _, name := range []string{PlaceholdersConfiguration, PodsConfiguration} {
		if reason := facts.Malformed(name); reason != "" {
			a.about(of, "", name, "").notVerified(path, "%s", reason)
			installed = true
		}
	}
	if installed {
		return
	}
	f := a.about(of, "", PlaceholdersConfiguration, "").required(path, "warmpool's webhooks are not installed: nothing is filled in and nothing denied")
	if a.facts.MutatingWebhooks.Get(PlaceholdersConfiguration) == nil && a.facts.ValidatingWebhooks.Get(PlaceholdersConfiguration) == nil {
		f.orElsewhere(a.facts.MutatingWebhooks, "warmpool's webhooks are not among these files: where they are not installed, nothing is filled in and nothing denied")
	}
}

func judgeNamespaces(a *Audit, w *webhook) {
	own := webhookNamespace
	if w.client.Service != nil {
		own = w.client.Service.Namespace
	}
	path := w.path.Child("namespaceSelector")
	selector := labels.Everything() // none given: all namespaces
	if w.namespaces != nil {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(w.namespaces); err != nil {
			w.invalid(path, field.OmitValueType{}, "webhook %s: not a selector: %v", w.name, err)
			return
		}
	}
	for _, name := range slices.Compact([]string{metav1.NamespaceSystem, own}) {
		set := labels.Set{}
		if namespace := a.facts.Namespaces.Get(name); namespace != nil {
			maps.Copy(set, namespace.Labels)
		}
		set[corev1.LabelMetadataName] = name
		if selector.Matches(set) {
			w.invalid(path, cmp.Or(clip(selector.String()), "every namespace"), "webhook %s matches namespace %s, whose pods must start without warmpool", w.name, name).
				withFix("Exclude it: {key: %s, operator: NotIn, values: [%s, %s]}.", corev1.LabelMetadataName, metav1.NamespaceSystem, own)
		}
	}
}

func judgeTimeout(w *webhook) {
	const least, most = 1, 5
	path := w.path.Child("timeoutSeconds")
	switch seconds := w.timeoutSeconds; {
	case seconds == nil:
		w.required(path, "webhook %s: the API server's default is 10 s: so long each pod waits while warmpool does not answer", w.name).
			withFix("Set timeoutSeconds to 3, at most %d.", most)
	case *seconds < least || *seconds > most:
		w.invalid(path, *seconds, "webhook %s: not %d to %d s: so long each pod waits while warmpool does not answer", w.name, least, most).
			withFix("Set timeoutSeconds to 3, at most %d.", most)
	}
}
