package policy

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/sizing"
)

// Applies to: placeholder Deployments.
// Requires: an effective request of at most allocatable − DaemonSets on a shape of nodes it can land on, in every resource.
// Why: for a placeholder that is a little too large Karpenter starts nodes, finds that it does not fit, and removes them, without end.
var placeholderSize = &Rule{
	ID:       "placeholder-size",
	Summary:  "The effective request is at most allocatable − DaemonSets on the nodes it can land on, for every resource; where it fits only some types, it is admitted with a warning.",
	Fix:      "Request at most what is available.",
	Subject:  PlaceholderDeployment,
	Action:   config.Deny,
	Severity: SeverityError,
	check:    checkPlaceholderSize,
}

func checkPlaceholderSize(o *Object) {
	if o.Pool == nil || o.fit().Conflict {
		return
	}
	path := o.specPath("containers")
	r := o.room()
	switch {
	case r.unknown != "":
		o.notVerified(path, "sizing: %s", r.unknown)
	case len(r.fails) == 0:
		unverifiedFit(o, r)
	case len(r.fits) > 0:
		partlyFits(o, r)
	default:
		o.shortfalls(r)
		if len(r.unseen) > 0 {
			o.notVerified(path, "%s", r.unseenText())
		}
	}
}

// partlyFits lists the types with and without room.
func partlyFits(o *Object, r *roomFor) {
	var short []string
	for _, shape := range r.fails {
		for _, s := range shape.Shortfalls(r.request) {
			short = append(short, fmt.Sprintf("%s (%s %s requested, %s available)", r.name(shape), s.Resource, s.Requested.String(), s.Available.String()))
		}
	}
	o.invalid(o.specPath("containers"), sizing.Quantities(r.request), "fits %s but not %s", r.names(r.fits), strings.Join(short, ", ")).
		withKey("fits some").withFix("Request at most what the smallest type has, or name the types that fit in the node affinity.").
		milder(SeverityWarning).atMostWarn()
}

// unverifiedFit says what is missing to be sure of a request that fits as far as is known.
func unverifiedFit(o *Object, r *roomFor) {
	path, class := o.specPath("containers"), o.Spec.RuntimeClassName
	switch {
	case !o.e.facts.DaemonSets.Known():
		o.notVerified(path, "sizing: what DaemonSets take is not known: %s", o.e.facts.DaemonSets.Reason())
		return
	case class != nil && o.Spec.Overhead == nil && o.e.facts.RuntimeClasses.Get(*class) == nil:
		o.notVerified(o.specPath("runtimeClassName"), "sizing: RuntimeClass %s is not known, nor its overhead", *class)
		return
	case len(r.problems) > 0:
		o.notVerified(path, "sizing: %s (%d such)", r.problems[0], len(r.problems))
		return
	}
	for _, shape := range r.fits {
		// Every node takes pods, and enough of them where nothing says how many.
		unknown := slices.DeleteFunc(shape.Unknown(r.request), func(name corev1.ResourceName) bool { return name == corev1.ResourcePods })
		if len(unknown) > 0 {
			o.notVerified(path, "sizing: no %s of %s says how much %s it has", shape.Source, r.name(shape), unknown[0])
			return
		}
	}
}
