package policy

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"warmpool.sh/webhook/config"
)

// Applies to: placeholder Deployments.
// Requires: a required podAntiAffinity term on kubernetes.io/hostname that selects the Deployment's own pods.
// Why: without it several placeholders share one node and the pool holds fewer warm nodes than it says; a selector that
// misses the pods does nothing and shows no error. It is never filled: only its author knows what else it should keep apart.
var placeholderAntiAffinity = &Rule{
	ID:       "placeholder-anti-affinity",
	Summary:  "A required podAntiAffinity term with topologyKey kubernetes.io/hostname selects the Deployment's own pods in their own namespace.",
	Fix:      "Add a requiredDuringSchedulingIgnoredDuringExecution podAntiAffinity term with topologyKey kubernetes.io/hostname and a labelSelector that matches the pod template's labels.",
	Subject:  PlaceholderDeployment,
	Action:   config.Deny,
	Severity: SeverityError,
	check:    checkAntiAffinity,
}

func checkAntiAffinity(o *Object) {
	path := o.specPath("affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
	anti := &corev1.PodAntiAffinity{}
	if o.Spec.Affinity != nil && o.Spec.Affinity.PodAntiAffinity != nil {
		anti = o.Spec.Affinity.PodAntiAffinity
	}
	terms := anti.RequiredDuringSchedulingIgnoredDuringExecution
	switch {
	case len(terms) > 0:
	case len(anti.PreferredDuringSchedulingIgnoredDuringExecution) > 0:
		o.required(path, "only preferred terms: the scheduler may still put two placeholders on one node")
		return
	default:
		o.required(path, "nothing keeps two placeholders off one node")
		return
	}
	const shown = 5
	var faults []string
	var unverified bool
	for i := range terms {
		fault, unknown := antiAffinityFault(o, &terms[i])
		if fault == "" {
			return
		}
		unverified = unverified || unknown
		if i < shown {
			faults = append(faults, fmt.Sprintf("term %d: %s", i, fault))
		}
	}
	if more := len(terms) - shown; more > 0 {
		faults = append(faults, fmt.Sprintf("%d more terms", more))
	}
	if unverified {
		o.notVerified(path, "%s", strings.Join(faults, "; "))
		return
	}
	o.required(path, "no term keeps the placeholder's own pods apart: %s", strings.Join(faults, "; "))
}

// antiAffinityFault says why the term does not keep the Deployment's own pods on different nodes; empty when it does.
// unknown tells that a fact is missing to judge it.
func antiAffinityFault(o *Object, term *corev1.PodAffinityTerm) (fault string, unknown bool) {
	if term.TopologyKey != corev1.LabelHostname {
		return fmt.Sprintf("topologyKey is %q, not %q", term.TopologyKey, corev1.LabelHostname), false
	}
	// A nil selector matches no pod, an empty one every pod.
	selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
	switch {
	case term.LabelSelector == nil:
		return "labelSelector is null, which matches no pod", false
	case err != nil:
		return fmt.Sprintf("labelSelector: %v", err), false
	case !selector.Matches(o.podLabels()):
		return fmt.Sprintf("labelSelector %q does not match the pod template's labels {%s}%s", clip(metav1.FormatLabelSelector(term.LabelSelector)), o.labelsText(), hashNote(selector)), false
	}
	if fault := labelKeysFault(o, term); fault != "" {
		return fault, false
	}
	return namespaceFault(o, term)
}

// hashNote explains a selector that asks about the label which no template has.
func hashNote(selector labels.Selector) string {
	requirements, _ := selector.Requirements()
	if slices.ContainsFunc(requirements, func(r labels.Requirement) bool { return r.Key() == podTemplateHash }) {
		return "; pods also have pod-template-hash, with another value for each revision"
	}
	return ""
}

func labelKeysFault(o *Object, term *corev1.PodAffinityTerm) string {
	// By Recreate the pods of one revision are gone before those of the next are created.
	if slices.Contains(term.MatchLabelKeys, podTemplateHash) && o.Deployment.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		return "matchLabelKeys has pod-template-hash: during a rollout old and new pods may share a node"
	}
	for _, key := range term.MismatchLabelKeys {
		if _, ok := o.Meta.Labels[key]; ok || key == podTemplateHash {
			return fmt.Sprintf("mismatchLabelKeys has %s, a label of the pods themselves: they do not keep each other away", key)
		}
	}
	return ""
}

func namespaceFault(o *Object, term *corev1.PodAffinityTerm) (fault string, unknown bool) {
	if len(term.Namespaces) == 0 && term.NamespaceSelector == nil || slices.Contains(term.Namespaces, o.Namespace) {
		return "", false
	}
	fault = fmt.Sprintf("it looks only at namespaces %s, not at the pods' own namespace %s", namespacesText(term), o.Namespace)
	if term.NamespaceSelector == nil {
		return fault, false
	}
	selector, err := metav1.LabelSelectorAsSelector(term.NamespaceSelector)
	if err != nil {
		return fmt.Sprintf("namespaceSelector: %v", err), false
	}
	ns := o.e.facts.Namespaces.Get(o.Namespace)
	switch {
	case selector.Empty():
		return "", false
	case ns == nil:
		return fmt.Sprintf("the labels of namespace %s are not known", o.Namespace), true
	case selector.Matches(labels.Set(ns.Labels)):
		return "", false
	default:
		return fault, false
	}
}

func namespacesText(term *corev1.PodAffinityTerm) string {
	var parts []string
	if len(term.Namespaces) > 0 {
		parts = append(parts, strings.Join(term.Namespaces, ", "))
	}
	if term.NamespaceSelector != nil {
		parts = append(parts, "with labels "+metav1.FormatLabelSelector(term.NamespaceSelector))
	}
	return strings.Join(parts, " and those ")
}
