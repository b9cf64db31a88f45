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
	Fix:      "Give what pre-pulls the image the pull policy IfNotPresent.",
	Subject:  PlaceholderDeployment,
	Action:   config.Warn,
	Severity: SeverityWarning,
	check: func(o *Object) {
		for _, c := range append(o.pullers(), o.carriers()...) {
			switch c.policy {
			case corev1.PullNever:
				o.invalid(c.policyPath, c.policy, "%s never pulls its image, so nothing gets warm", c.name).withKey(c.name)
			case corev1.PullAlways:
				o.invalid(c.policyPath, c.policy, "%s asks the registry at each start, and waits while it is down", c.name).withKey(c.name)
			case corev1.PullIfNotPresent:
			}
		}
	},
}
