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

func checkPlaceholderSize(o *Object) []Finding {
	if o.Pool == nil || o.fit().Conflict {
		return nil
	}
	path := o.specPath("containers")
	r := o.room()
	switch {
	case r.unknown != "":
		return []Finding{notVerified(path, "sizing: "+r.unknown)}
	case len(r.fails) == 0:
		return unverifiedFit(o, r)
	case len(r.fits) > 0:
		return []Finding{partlyFits(o, r)}
	case len(r.unseen) > 0:
		findings := shortfallFindings(o, r)
		for i := range findings {
			findings[i] = findings[i].atMostWarn().milder(SeverityWarning)
		}
		return append(findings, notVerified(path, unseenText(r)))
	default:
		return shortfallFindings(o, r)
	}
}

func unseenText(r *roomFor) string {
	return fmt.Sprintf("sizing: no node has been seen of %s", strings.Join(r.unseen, ", "))
}

// partlyFits lists the types with and without room.
func partlyFits(o *Object, r *roomFor) Finding {
	var short []string
	for _, shape := range r.fails {
		for _, s := range shape.Shortfalls(r.request) {
			short = append(short, fmt.Sprintf("%s (%s %s requested, %s available)", r.name(shape), s.Resource, s.Requested.String(), s.Available.String()))
		}
	}
	return invalid(o.specPath("containers"), sizing.Quantities(r.request),
		fmt.Sprintf("fits %s but not %s", r.names(r.fits), strings.Join(short, ", "))).
		withKey("fits some").withFix("Request at most what the smallest type has, or name the types that fit in the node affinity.").milder(SeverityWarning).atMostWarn()
}

// unverifiedFit says what is missing to be sure of a request that fits as far as is known.
func unverifiedFit(o *Object, r *roomFor) []Finding {
	path := o.specPath("containers")
	switch class := o.Spec.RuntimeClassName; {
	case !o.facts.DaemonSets.Known():
		return []Finding{notVerified(path, "sizing: what DaemonSets take is not known: "+o.facts.DaemonSets.Reason())}
	case class != nil && o.Spec.Overhead == nil && o.facts.RuntimeClasses.Get(*class) == nil:
		return []Finding{notVerified(o.specPath("runtimeClassName"), fmt.Sprintf("sizing: RuntimeClass %s is not known, nor its overhead", *class))}
	}
	if len(r.problems) > 0 {
		return []Finding{notVerified(path, fmt.Sprintf("sizing: %s (%d such)", r.problems[0], len(r.problems)))}
	}
	for _, shape := range r.fits {
		// Every node takes pods, and enough of them where nothing says how many.
		unknown := slices.DeleteFunc(shape.Unknown(r.request), func(name corev1.ResourceName) bool { return name == corev1.ResourcePods })
		if len(unknown) > 0 {
			return []Finding{notVerified(path, fmt.Sprintf("sizing: no %s of %s says how much %s it has", shape.Source, r.name(shape), unknown[0]))}
		}
	}
	return nil
}
