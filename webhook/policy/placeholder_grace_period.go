package policy

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Applies to: placeholder Deployments.
// Requires: terminationGracePeriodSeconds 0 and no preStop hook.
// Why: a Workspace that preempts the placeholder waits until it is gone.
var placeholderGracePeriod = &Rule{
	ID:       "placeholder-grace-period",
	Summary:  "terminationGracePeriodSeconds is 0 and no container has a preStop hook.",
	Fix:      "Set terminationGracePeriodSeconds: 0 and remove the preStop hook.",
	Subject:  PlaceholderDeployment,
	Fills:    "terminationGracePeriodSeconds",
	Action:   config.Warn,
	Severity: SeverityWarning,
	check:    checkGracePeriod,
	mutate: func(o *Object, patch *placement.Patch) {
		// By the time of admission, unset looks like the API server's default.
		if gracePeriod(o) == corev1.DefaultTerminationGracePeriodSeconds {
			o.Spec.TerminationGracePeriodSeconds = new(int64)
			patch.Add(o.specPointer()+"/terminationGracePeriodSeconds", int64(0))
		}
	},
}

func gracePeriod(o *Object) int64 {
	return ptr.Deref(o.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
}

func checkGracePeriod(o *Object) {
	if seconds := gracePeriod(o); seconds != 0 {
		o.invalid(o.specPath("terminationGracePeriodSeconds"), seconds, "a Workspace that preempts the placeholder waits up to %d s for it to end", seconds).
			withAmount(seconds)
	}
	for path, c := range o.containers() { // of init containers only sidecars can have hooks
		if c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
			o.invalid(path.Child("lifecycle", "preStop"), c.Name, "a Workspace that preempts the placeholder waits for the preStop hook of container %s", c.Name).
				withKey("preStop " + c.Name)
		}
	}
}
