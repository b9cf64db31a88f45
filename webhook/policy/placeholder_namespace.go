package policy

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	psaapi "k8s.io/pod-security-admission/api"
	psapolicy "k8s.io/pod-security-admission/policy"

	"warmpool.sh/webhook/config"
)

// Applies to: placeholder Deployments.
// Requires: a namespace that lets their pods in: outside Task Governance, without a kueue queue, and with a Pod Security level that they satisfy.
// Why: the Deployment looks fine while its ReplicaSet cannot create a single pod, or its pods wait for quota.
var placeholderNamespace = &Rule{
	ID:       "placeholder-namespace",
	Summary:  "The namespace is not under Task Governance, the pods carry no kueue queue label and satisfy the namespace's Pod Security level.",
	Fix:      "Move the placeholder to a namespace of its own, such as overprovisioning, without these labels.",
	Subject:  PlaceholderDeployment,
	Action:   config.Warn,
	Severity: SeverityError,
	check:    checkNamespace,
}

// The two labels with which HyperPod Task Governance takes over a namespace; each alone does nothing.
const (
	activateQuota = "sagemaker.amazonaws.com/activate-quota"
	managedQueue  = "sagemaker.amazonaws.com/sagemaker-managed-queue"
	queueName     = "kueue.x-k8s.io/queue-name"
)

func checkNamespace(o *Object) []Finding {
	var findings []Finding
	if queue, ok := o.Meta.Labels[queueName]; ok {
		findings = append(findings, invalid(o.path.Child("metadata", "labels").Key(queueName), queue,
			"kueue would hold the placeholder back and count it against a quota").withFix("Remove the label from the pod template.").milder(SeverityWarning))
	}
	path := field.NewPath("metadata", "namespace")
	if !o.facts.Namespaces.Known() {
		return append(findings, notVerified(path, "Namespaces: "+o.facts.Namespaces.Reason()))
	}
	ns := o.facts.Namespaces.Get(o.Namespace)
	if ns == nil {
		return append(findings, notVerified(path, "namespace "+o.Namespace+" is not known"))
	}
	quota, queue := ns.Labels[activateQuota] == "Enabled", ns.Labels[managedQueue] == "true"
	switch {
	case quota && queue:
		findings = append(findings, invalid(path, o.Namespace,
			fmt.Sprintf("Task Governance refuses pods without a queue here, by the labels %s=Enabled and %s=true", activateQuota, managedQueue)).withKey("task governance"))
	case quota || queue:
		missing := activateQuota + "=Enabled"
		if quota {
			missing = managedQueue + "=true"
		}
		findings = append(findings, invalid(path, o.Namespace, "Task Governance would refuse the pods if the namespace had also the label "+missing).
			withKey("half task governance").milder(SeverityInfo).atMostAudit())
	}
	return append(findings, checkPodSecurity(o, ns)...)
}

var podSecurity = mustPodSecurity()

func mustPodSecurity() psapolicy.Evaluator {
	evaluator, err := psapolicy.NewEvaluator(psapolicy.DefaultChecks(), nil)
	if err != nil {
		panic(err) // the library's own table is wrong: found by any test
	}
	return evaluator
}

func checkPodSecurity(o *Object, ns *corev1.Namespace) []Finding {
	privileged := psaapi.LevelVersion{Level: psaapi.LevelPrivileged, Version: psaapi.LatestVersion()}
	// Errors are about the labels' syntax: the library then falls back as the API server does.
	levels, _ := psaapi.PolicyToEvaluate(ns.Labels, psaapi.Policy{Enforce: privileged, Audit: privileged, Warn: privileged})
	results := psapolicy.AggregateCheckResults(podSecurity.EvaluatePod(levels.Enforce, o.Meta, o.Spec))
	if results.Allowed {
		return nil
	}
	return []Finding{invalid(field.NewPath("metadata", "namespace"), o.Namespace,
		fmt.Sprintf("its Pod Security level %s refuses the pods: %s", levels.Enforce.String(), results.ForbiddenDetail())).
		withKey("pod security").withFix("Change the pod template to what the level asks for, in init containers too.")}
}
