package policy

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Applies to: placeholder Deployments.
// Requires: a toleration without time limit for every NoSchedule and NoExecute taint of the pool.
// Why: one taint that is not tolerated and the placeholder stays Pending: no node is warm, and nothing says so.
var placeholderTolerations = &Rule{
	ID:       "placeholder-tolerations",
	Summary:  "Every NoSchedule and NoExecute taint of the pool is tolerated permanently.",
	Fix:      "Add the toleration to the pod template.",
	Subject:  PlaceholderDeployment,
	Fills:    "tolerations",
	Action:   config.Deny,
	Severity: SeverityError,
	check:    checkTolerations,
	mutate:   fillTolerations,
}

func fillTolerations(o *Object, patch *placement.Patch) {
	if o.Pool != nil && !isBound(o) {
		o.Pool.Tolerate(o.Spec, o.specPointer(), patch)
	}
}

// checkTolerations serves placeholders and Workspace pods. Of an object that excludes its pool nothing is said here:
// it needs no toleration of taints that it never meets.
func checkTolerations(o *Object) []Finding {
	if o.Pool == nil || o.fit().Conflict {
		return nil
	}
	taints, _ := o.Pool.Untolerated(o.Spec.Tolerations)
	if len(taints)+len(o.Pool.Unknown) == 0 {
		return nil
	}
	path := o.specPath("tolerations")
	var findings []Finding
	for i := range taints {
		text := taints[i].ToString()
		message := fmt.Sprintf("taint %s of pool %s is not tolerated", text, o.Pool.Config.Name)
		if toleratedForATime(o.Spec.Tolerations, &taints[i]) {
			message = fmt.Sprintf("taint %s of pool %s is tolerated for a limited time only", text, o.Pool.Config.Name)
		}
		findings = append(findings, required(path, message).withKey(text))
	}
	for _, unknown := range o.Pool.Unknown {
		findings = append(findings, notVerified(path, unknown+", so its taints are not known"))
	}
	return findings
}

func toleratedForATime(tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	for i := range tolerations {
		if tolerations[i].TolerationSeconds != nil && placement.Tolerates(&tolerations[i], taint) {
			return true
		}
	}
	return false
}

// isBound tells whether a pod has its node already: placement comes too late, and the kubelet would refuse the pod
// for an affinity that the node does not meet.
func isBound(o *Object) bool { return o.Pod != nil && o.Spec.NodeName != "" }
