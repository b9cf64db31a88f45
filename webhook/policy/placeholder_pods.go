package policy

import (
	"cmp"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
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
	around:   checkPodFailures,
}

func checkPods(o *Object) []Finding {
	findings := o.unknownToAdmission()
	findings = append(findings, checkRuntimeClass(o)...)
	pod := sizing.Admitted(o.Spec, o.Namespace, o.facts)
	findings = append(findings, checkPodLevel(o, pod)...)
	for key, limits := range o.facts.LimitRanges.Prefix(o.Namespace + "/") {
		findings = append(findings, (&limitRange{o, pod, key}).check(limits)...)
	}
	for key, quota := range o.facts.ResourceQuotas.Prefix(o.Namespace + "/") {
		findings = append(findings, (&podQuota{o, pod, quota, key}).check()...)
	}
	return findings
}

// unknownToAdmission are facts that the API server goes by and that are not known here. Whoever applies the placeholder
// cannot change that: only audits report it.
func (o *Object) unknownToAdmission() []Finding {
	var findings []Finding
	unknown := func(key, why string) {
		findings = append(findings, notVerified(field.NewPath("metadata", "namespace"), why).withKey("not verified: "+key).atMostAudit())
	}
	ranges, quotas := o.facts.LimitRanges, o.facts.ResourceQuotas
	if !ranges.Known() {
		unknown("LimitRanges", "LimitRanges: "+ranges.Reason())
	}
	switch {
	case o.facts.QuotaNamespace != "" && o.facts.QuotaNamespace != o.Namespace:
		unknown("ResourceQuotas", fmt.Sprintf("ResourceQuotas are read in namespace %s alone", o.facts.QuotaNamespace))
	case !quotas.Known():
		unknown("ResourceQuotas", "ResourceQuotas: "+quotas.Reason())
	}
	malformed := func(kind string, keys []string, reason func(string) string) {
		for _, key := range keys {
			if strings.HasPrefix(key, o.Namespace+"/") {
				unknown(kind+" "+key, fmt.Sprintf("%s %s: %s", kind, key, reason(key)))
			}
		}
	}
	malformed("LimitRange", ranges.AllMalformed(), ranges.Malformed)
	malformed("ResourceQuota", quotas.AllMalformed(), quotas.Malformed)
	return findings
}

// checkPodLevel looks for containers that ask for more together than the pod as a whole. The API server takes such a
// template, because it completes requests only in pods.
func checkPodLevel(o *Object, pod *corev1.Pod) []Finding {
	if o.Spec.Resources == nil {
		return nil
	}
	var findings []Finding
	together := podresource.AggregateContainerRequests(pod, podresource.PodResourcesOptions{})
	for _, name := range sortedNames(pod.Spec.Resources.Requests) {
		list, most := "requests", o.Spec.Resources.Requests
		if !has(most, name) {
			list, most = "limits", o.Spec.Resources.Limits
		}
		sum, whole := together[name], most[name]
		if sum.Cmp(whole) <= 0 {
			continue
		}
		message := fmt.Sprintf("all containers ask for %s %s together, counting limits and defaults where no request is set, and the pod as a whole for %s: the API server refuses every pod",
			name, sum.String(), whole.String())
		findings = append(findings, invalid(o.specPath("resources", list).Key(string(name)), whole.String(), message).
			withFix(fmt.Sprintf("Set it to at least %s, or set lower requests of the containers.", sum.String())))
	}
	return findings
}

// checkPodFailures tells which placeholders say themselves that pods were refused, and why.
func checkPodFailures(a *Audit) []Finding {
	var findings []Finding
	for _, o := range a.placeholders {
		c := podFailure(o.Deployment)
		if c == nil || replicasOf(o.Deployment) == 0 {
			continue
		}
		message := fmt.Sprintf("%d of %d pods exist, and the others cannot be created: %s",
			o.Deployment.Status.Replicas, replicasOf(o.Deployment), clip(cmp.Or(c.Message, c.Reason)))
		f := invalid(field.NewPath("status", "conditions").Key(string(c.Type)), c.Reason, message).
			withFix("Correct what the message names: a quota, a LimitRange, the PriorityClass, Pod Security, or a webhook that denies the pods.")
		findings = append(findings, f.about("Deployment", o.Namespace, o.Name, o.PoolName()))
	}
	return findings
}

// replicaSetRefused is the reason of a Deployment whose ReplicaSet itself could not be created.
const replicaSetRefused = "ReplicaSetCreateError"

// podFailure is the condition by which a Deployment says that it cannot have its pods; nil without one.
func podFailure(d *appsv1.Deployment) *appsv1.DeploymentCondition {
	for i := range d.Status.Conditions {
		c := &d.Status.Conditions[i]
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue ||
			c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse && c.Reason == replicaSetRefused {
			return c
		}
	}
	return nil
}
