package policy

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

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
		// 30 is the API server's default: by the time of admission, unset looks like that.
		if o.Spec.TerminationGracePeriodSeconds == nil || *o.Spec.TerminationGracePeriodSeconds == corev1.DefaultTerminationGracePeriodSeconds {
			o.Spec.TerminationGracePeriodSeconds = new(int64)
			patch.Add(o.specPointer()+"/terminationGracePeriodSeconds", int64(0))
		}
	},
}

func checkGracePeriod(o *Object) []Finding {
	var findings []Finding
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if o.Spec.TerminationGracePeriodSeconds != nil {
		seconds = *o.Spec.TerminationGracePeriodSeconds
	}
	if seconds != 0 {
		f := invalid(o.specPath("terminationGracePeriodSeconds"), seconds,
			fmt.Sprintf("a Workspace that takes the placeholder's place waits up to %d s for it to end", seconds))
		f.amount = seconds
		findings = append(findings, f)
	}
	findings = append(findings, preStopHooks(o.specPath("containers"), o.Spec.Containers)...)
	// Of init containers only sidecars can have hooks.
	return append(findings, preStopHooks(o.specPath("initContainers"), o.Spec.InitContainers)...)
}

func preStopHooks(path *field.Path, containers []corev1.Container) []Finding {
	var findings []Finding
	for i := range containers {
		c := &containers[i]
		if c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
			findings = append(findings, invalid(path.Index(i).Child("lifecycle", "preStop"), c.Name,
				"a Workspace that takes the placeholder's place waits for the preStop hook of container "+c.Name).withKey("preStop "+c.Name))
		}
	}
	return findings
}
