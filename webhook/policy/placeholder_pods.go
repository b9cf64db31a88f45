package policy

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podresource "k8s.io/component-helpers/resource"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/sizing"
)

// Applies to: placeholder Deployments.
// Requires: pods that the API server takes: with what the namespace's LimitRanges make of them, within these and within the
// ResourceQuotas, and as their RuntimeClass wants them; in audits, no ReplicaFailure of the Deployment. Pod Security is
// judged by placeholder-namespace, the PriorityClass by placeholder-priority.
// Why: the API server checks the Deployment alone. Each of its pods is refused later, where no one looks.
var placeholderPods = &Rule{
	ID:       "placeholder-pods",
	Summary:  "The API server accepts its pods: they keep to the namespace's LimitRanges and ResourceQuotas and to their RuntimeClass; in audits, none was refused.",
	Fix:      "Correct what the API server refuses.",
	Subject:  PlaceholderDeployment,
	Action:   config.Warn,
	Severity: SeverityError,
	check:    checkPods,
	audit:    auditPodFailures,
}

func checkPods(o *Object) {
	unknownToAdmission(o)
	checkRuntimeClass(o)
	pod := sizing.Admitted(o.Spec, o.Namespace, o.e.facts)
	checkPodLevel(o, pod)
	for key, limits := range o.e.facts.LimitRanges.Prefix(o.Namespace + "/") {
		(&limitRange{o, pod, key}).check(limits)
	}
	for key, quota := range o.e.facts.ResourceQuotas.Prefix(o.Namespace + "/") {
		(&podQuota{o, pod, quota, key}).check()
	}
}

// unknownToAdmission are facts that the API server goes by and that are not known here. Whoever applies the placeholder
// cannot change that: only audits report it.
func unknownToAdmission(o *Object) {
	unknown := func(key, format string, args ...any) {
		o.notVerified(namespacePath, format, args...).withKey("not verified: " + key).atMostAudit()
	}
	facts := o.e.facts
	if !facts.LimitRanges.Known() {
		unknown("LimitRanges", "LimitRanges: %s", facts.LimitRanges.Reason())
	}
	switch {
	case facts.QuotaNamespace != "" && facts.QuotaNamespace != o.Namespace:
		unknown("ResourceQuotas", "ResourceQuotas are read in namespace %s alone", facts.QuotaNamespace)
	case !facts.ResourceQuotas.Known():
		unknown("ResourceQuotas", "ResourceQuotas: %s", facts.ResourceQuotas.Reason())
	}
	for _, kind := range []struct {
		name  string
		facts kind
	}{{"LimitRange", facts.LimitRanges}, {"ResourceQuota", facts.ResourceQuotas}} {
		for _, key := range kind.facts.AllMalformed() {
			if strings.HasPrefix(key, o.Namespace+"/") {
				unknown(kind.name+" "+key, "%s %s: %s", kind.name, key, kind.facts.Malformed(key))
			}
		}
	}
}

// checkPodLevel looks for containers that ask for more together than the pod as a whole. The API server takes such a
// template, because it completes requests only in pods.
func checkPodLevel(o *Object, pod *corev1.Pod) {
	if o.Spec.Resources == nil {
		return
	}
	together := podresource.AggregateContainerRequests(pod, podresource.PodResourcesOptions{})
	for _, name := range sortedNames(pod.Spec.Resources.Requests) {
		list, whole, _ := asked(o.Spec.Resources, name)
		if sum := together[name]; sum.Cmp(whole) > 0 {
			o.invalid(o.specPath("resources", list).Key(string(name)), whole.String(),
				"all containers ask for %s %s together, counting limits and defaults where no request is set, and the pod as a whole for %s: the API server refuses every pod",
				name, sum.String(), whole.String()).
				withFix("Set it to at least %s, or set lower requests of the containers.", sum.String())
		}
	}
}

// auditPodFailures says which placeholders report themselves that pods were refused, and why.
func auditPodFailures(a *Audit) {
	for _, o := range a.Placeholders {
		if c := podFailure(o.Deployment); c != nil && !isPaused(o.Deployment) {
			o.invalid(field.NewPath("status", "conditions").Key(string(c.Type)), c.Reason, "%d of %d pods exist, and the others cannot be created: %s",
				o.Deployment.Status.Replicas, ReplicasOf(o.Deployment), clip(cmp.Or(c.Message, c.Reason))).
				withFix("Correct what the message names: a quota, a LimitRange, the PriorityClass, Pod Security, or a webhook that denies the pods.")
		}
	}
}
