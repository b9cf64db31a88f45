package policy

import (
	"slices"
	"strings"

	"warmpool.sh/webhook/cpa"
	"warmpool.sh/webhook/placement"
)

// Applies to: Cluster Proportional Autoscalers (CPA) of placeholders.
// Requires: each --target is a placeholder Deployment in the namespace that CPA works in, of the pool whose nodes it
// counts, and no other CPA scales it.
// Why: a target that is missing is a line in CPA's log; a wrong one grows with a pool that it does not warm.
var cpaTarget = &Rule{
	ID:       "cpa-target",
	Summary:  "CPA's target exists in the namespace that CPA works in, and is a placeholder of the pool whose nodes it counts.",
	Fix:      "Correct --target, or --namespace.",
	Subject:  ProportionalScaler,
	Severity: SeverityError,
	audit: func(a *Audit) {
		a.eachCPA(func(a *Audit, s scaler) {
			if len(s.Targets) == 0 {
				s.required(s.Args, "CPA does not start without --target").withFix("Add --target=deployment/NAME to CPA's arguments.")
				return
			}
			for i := range s.Targets {
				judgeTarget(a, s, i)
			}
			if other := a.countsInstead(s); other != nil {
				s.invalid(s.Args, "--nodelabels="+clip(s.Flags["nodelabels"]), "counts nodes of pool %s, but scales placeholders of pool %s", other.Config.Name, s.pool).
					withFix("Set --nodelabels=%s, or name a placeholder of pool %s.", cpa.Selector(s.Pool), other.Config.Name)
			}
		})
	},
}

func judgeTarget(a *Audit, s scaler, i int) {
	t := s.Targets[i]
	fault := func(format string, args ...any) *Finding {
		return s.invalid(s.Args, "--target="+clip(t.Text), format, args...)
	}
	key := s.Works + "/" + t.Name
	malformed := a.facts.Deployments.Malformed(key)
	switch {
	case strings.Contains(t.Text, "$(") || strings.Contains(s.Works, "$("):
		s.notVerified(s.Args, "the value of a variable in --target or --namespace")
	case strings.Count(t.Text, "/") != 1 || t.Kind == "" || t.Name == "":
		fault("CPA does not start: a target is deployment/NAME")
	case t.Kind != "deployment":
		fault("placeholders are Deployments, this is a %s", t.Kind)
	case s.Works == "": // cpa-config speaks
	case malformed != "":
		s.notVerified(s.Args, "Deployment %s: %s", t.Name, malformed)
	case t.Deployment == nil:
		there := a.elsewhere(t.Name)
		fault("no placeholder of this name in namespace %s, where CPA looks%s", s.Works, there).
			orElsewhere(a.facts.Deployments, "Deployment %s is not among these files%s", key, there)
	case !t.Placeholder:
		fault("%s is no placeholder: no label %s, and another priority class than %s", key, placement.PoolLabel, a.config.Placeholders.PriorityClassName)
	case t.Pool != nil && t.Pool != s.Pool:
		fault("is of pool %s, and another target of pool %s: both get the same count", poolName(t.Pool), s.pool)
	default:
		if other := a.sharedWith(s, i); other != "" {
			fault("%s scales it too: each undoes what the other one sets", other)
		}
	}
}

// elsewhere says where there is a placeholder of the name.
func (a *Audit) elsewhere(name string) string {
	for _, o := range a.Placeholders {
		if o.Name == name {
			return "; there is one in namespace " + o.Namespace
		}
	}
	return ""
}

// sharedWith is another running CPA that scales the same Deployment, or the same one that names it twice; empty: none.
func (a *Audit) sharedWith(s scaler, i int) string {
	same := func(other cpa.Target) bool { return other.Deployment == s.Targets[i].Deployment }
	if slices.ContainsFunc(s.Targets[:i], same) {
		return "an earlier entry"
	}
	for _, other := range a.CPAs {
		if other != s.Scaler && !other.Paused() && !s.Paused() && slices.ContainsFunc(other.Targets, same) {
			return other.String()
		}
	}
	return ""
}
