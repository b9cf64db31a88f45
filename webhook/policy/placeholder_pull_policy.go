package policy

import (
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/config"
)

// Applies to: placeholder Deployments, their pre-pull containers, and other containers and image volumes with an image of
// the pool's templates.
// Requires: imagePullPolicy IfNotPresent.
// Why: Never pulls nothing, and Always asks the registry at each start, also when it is down.
var placeholderPullPolicy = &Rule{
	ID:       "placeholder-pull-policy",
	Summary:  "What pre-pulls an image has the pull policy IfNotPresent.",
	Fix:      "Set imagePullPolicy: IfNotPresent on the pre-pull container.",
	Subject:  PlaceholderDeployment,
	Action:   config.Warn,
	Severity: SeverityWarning,
	check:    checkPullPolicy,
}

func checkPullPolicy(o *Object) []Finding {
	var findings []Finding
	for _, i := range o.prePullContainers() {
		c := &o.Spec.InitContainers[i]
		path := o.specPath("initContainers").Index(i).Child("imagePullPolicy")
		switch pullPolicy(c) {
		case corev1.PullNever:
			findings = append(findings, invalid(path, corev1.PullNever, c.Name+" never pulls its image, so nothing gets warm").withKey(c.Name))
		case corev1.PullAlways:
			findings = append(findings, invalid(path, corev1.PullAlways, c.Name+" asks the registry at each start, and waits while it is down").withKey(c.Name))
		case corev1.PullIfNotPresent:
		}
	}
	for _, c := range o.carriers() {
		consequence := map[corev1.PullPolicy]string{
			corev1.PullNever: " never pulls its image, so nothing gets warm", corev1.PullAlways: " asks the registry at each start, and waits while it is down",
		}[c.policy]
		if consequence != "" {
			findings = append(findings, invalid(c.policyPath, c.policy, c.what+consequence).withKey(c.what).withFix("Set IfNotPresent there."))
		}
	}
	return findings
}

// pullPolicy is the container's pull policy, or the one that the API server gives where it is not set.
func pullPolicy(c *corev1.Container) corev1.PullPolicy {
	if c.ImagePullPolicy != "" {
		return c.ImagePullPolicy
	}
	if tag, _ := tagOf(c.Image); tag == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}
