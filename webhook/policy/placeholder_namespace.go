package policy

import (
	corev1 "k8s.io/api/core/v1"
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

func checkNamespace(o *Object) {
	if queue, ok := o.Meta.Labels[queueName]; ok {
		o.invalid(o.path.Child("metadata", "labels").Key(queueName), queue, "kueue would hold the placeholder back and count it against a quota").
			withFix("Remove the label from the pod template.").milder(SeverityWarning)
	}
	namespaces := o.e.facts.Namespaces
	ns := namespaces.Get(o.Namespace)
	switch {
	case !namespaces.Known():
		o.notVerified(namespacePath, "Namespaces: %s", namespaces.Reason())
		return
	case ns == nil:
		o.notVerified(namespacePath, "namespace %s is not known", o.Namespace)
		return
	}
	switch quota, queue := governed(ns); {
	case quota && queue:
		o.invalid(namespacePath, o.Namespace, "Task Governance refuses pods without a queue here, by the labels %s=Enabled and %s=true", activateQuota, managedQueue).
			withKey("task governance")
	case quota || queue:
		missing := activateQuota + "=Enabled"
		if quota {
			missing = managedQueue + "=true"
		}
		o.invalid(namespacePath, o.Namespace, "Task Governance would refuse the pods if the namespace had also the label %s", missing).
			withKey("half task governance").milder(SeverityInfo).atMostAudit()
	}
	checkPodSecurity(o, ns)
}

var podSecurity = mustPodSecurity()

func mustPodSecurity() psapolicy.Evaluator {
	evaluator, err := psapolicy.NewEvaluator(psapolicy.DefaultChecks(), nil)
	if err != nil {
		panic(err) // the library's own table is wrong: found by any test
	}
	return evaluator
}

func checkPodSecurity(o *Object, ns *corev1.Namespace) {
	privileged := psaapi.LevelVersion{Level: psaapi.LevelPrivileged, Version: psaapi.LatestVersion()}
	// Errors are about the labels' syntax: the library then falls back as the API server does.
	levels, _ := psaapi.PolicyToEvaluate(ns.Labels, psaapi.Policy{Enforce: privileged, Audit: privileged, Warn: privileged})
	results := psapolicy.AggregateCheckResults(podSecurity.EvaluatePod(levels.Enforce, o.Meta, o.Spec))
	if !results.Allowed {
		o.invalid(namespacePath, o.Namespace, "its Pod Security level %s refuses the pods: %s", levels.Enforce.String(), results.ForbiddenDetail()).
			withKey("pod security").withFix("Change the pod template to what the level asks for, in init containers too.")
	}
}
