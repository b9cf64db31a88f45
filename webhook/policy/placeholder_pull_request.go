package policy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/sizing"
)

// Applies to: placeholder Deployments with pre-pull containers.
// Requires: pre-pull containers that do not ask for more than the main containers.
// Why: the scheduler counts the largest init step: the placeholder would hold room that it never uses.
var placeholderPullRequest = &Rule{
	ID:       "placeholder-pull-request",
	Summary:  "Pre-pull containers do not raise the effective request above the main containers'.",
	Fix:      "Lower the requests of the pre-pull containers: pulling an image takes none of them.",
	Subject:  PlaceholderDeployment,
	Action:   config.Warn,
	Severity: SeverityWarning,
	check:    checkPullRequest,
}

func checkPullRequest(o *Object) {
	pulls := o.prePullContainers()
	if len(pulls) == 0 {
		return
	}
	without := *o.Spec
	without.InitContainers = nil
	for i := range o.Spec.InitContainers {
		if !slices.Contains(pulls, i) {
			without.InitContainers = append(without.InitContainers, o.Spec.InitContainers[i])
		}
	}
	full, main := o.Request(), sizing.Request(&without, o.Namespace, o.e.facts)
	for _, name := range sortedNames(full) {
		have, want := full[name], main[name]
		if have.Cmp(want) > 0 {
			o.invalid(o.specPath("initContainers").Index(largestOf(o, pulls, name)), have.String(),
				"pre-pull containers raise the pod's %s from %s to %s", name, want.String(), have.String()).withKey(string(name))
		}
	}
}

// largestOf is the first of the init containers that asks for most of the resource.
func largestOf(o *Object, indices []int, name corev1.ResourceName) int {
	return slices.MaxFunc(indices, func(i, j int) int {
		_, a, _ := asked(&o.Spec.InitContainers[i].Resources, name)
		_, b, _ := asked(&o.Spec.InitContainers[j].Resources, name)
		return a.Cmp(b)
	})
}
