package policy

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/prepull"
)

// Applies to: placeholder Deployments, and placeholders.namespace of the configuration.
// Requires: placeholders are in that one namespace, and some are.
// Why: warmpool may write and watches pods in one namespace only. Elsewhere a placeholder is judged, and its images are set at
// admission, but nothing keeps it current afterwards, and nothing else shows that.
var placeholderElsewhere = &Rule{
	ID:       "placeholder-elsewhere",
	Summary:  "It is in placeholders.namespace: only there does warmpool follow new images, label pods that are warm, and send Workspaces to them.",
	Fix:      "Move the placeholder, its CPA and its PodDisruptionBudget to placeholders.namespace: there is one such namespace, and it may hold placeholders of all pools.",
	Subject:  PlaceholderDeployment,
	Action:   config.Warn,
	Severity: SeverityError,
	check: func(o *Object) {
		if own := o.e.config.Placeholders.Namespace; o.Namespace != own {
			o.invalid(namespacePath, o.Namespace,
				"not %s (placeholders.namespace), so warmpool does not: write a template's new image into it; label its warm pods %s, without which no Workspace prefers its nodes and a PodDisruptionBudget over pods that are not yet warm holds up drains; count its pods in warmpool_placeholders",
				own, prepull.WarmLabel).milder(SeverityWarning)
		}
	},
	audit: auditPlaceholdersNamespace,
}

// auditPlaceholdersNamespace finds a configuration that names a namespace without placeholders while there are some in others.
func auditPlaceholdersNamespace(a *Audit) {
	own, found := a.config.Placeholders.Namespace, a.placeholderNamespaces()
	if len(found) == 0 || slices.Contains(found, own) {
		return
	}
	f := a.about(config.Kind, "", "", "").invalid(field.NewPath("placeholders", "namespace"), own,
		"no placeholder is there, all %d are in %s: warmpool follows no image, labels no pod and sends no Workspace to a warm node", len(a.Placeholders), clipped(found))
	if len(found) == 1 {
		f.withFix("Set placeholders.namespace: %s and apply manifests/variants/namespaces with it, which gives warmpool its rights there; or move the placeholders to %s.", found[0], own)
	}
}
