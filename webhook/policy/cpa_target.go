package policy

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Applies to: Cluster Proportional Autoscalers (CPA) of placeholders.
// Requires: each --target is a placeholder Deployment in the namespace that CPA works in, of the pool whose nodes it
// counts, and no other CPA scales it.
// Why: a target that is missing is a line in CPA's log; a wrong one grows with a pool that it does not warm.
var cpaTarget = &Rule{
	ID:        "cpa-target",
	Summary:   "CPA's target exists in the namespace that CPA works in, and is a placeholder of the pool whose nodes it counts.",
	Fix:       "Correct --target, or --namespace.",
	Subject:   ProportionalScaler,
	Action:    config.Audit,
	Severity:  SeverityError,
	AuditOnly: true,
	around: func(a *Audit) []Finding {
		return a.eachAutoscaler(func(s *autoscaler) []Finding { return checkCPATarget(a, s) })
	},
}

func checkCPATarget(a *Audit, s *autoscaler) []Finding {
	if len(s.targets) == 0 {
		return []Finding{required(s.args, "CPA does not start without --target").
			withFix("Add --target=deployment/NAME to CPA's arguments.")}
	}
	var findings []Finding
	for i, t := range s.targets {
		if f, found := a.targetFault(s, t, i); found {
			findings = append(findings, f)
		}
	}
	if other := a.countsInstead(s); other != nil {
		findings = append(findings, invalid(s.args, "--nodelabels="+clip(s.flags["nodelabels"]),
			fmt.Sprintf("counts nodes of pool %s, but scales placeholders of pool %s", other.Config.Name, s.poolName())).
			withFix("Set --nodelabels="+nodeLabelsOf(s.pool)+", or name a placeholder of pool "+other.Config.Name+"."))
	}
	return findings
}

func (a *Audit) targetFault(s *autoscaler, t scaleTarget, i int) (f Finding, found bool) {
	fault := func(message string) (Finding, bool) {
		return invalid(s.args, "--target="+clip(t.Text), message), true
	}
	switch {
	case strings.Contains(t.Text, "$(") || strings.Contains(s.namespace, "$("):
		return notVerified(s.args, "the value of a variable in --target or --namespace"), true
	case strings.Count(t.Text, "/") != 1 || t.Kind == "" || t.Name == "":
		return fault("CPA does not start: a target is deployment/NAME")
	case t.Kind != "deployment":
		return fault("placeholders are Deployments, this is a " + t.Kind)
	case s.namespace == "":
		return Finding{}, false // cpa-config speaks
	case a.facts.Deployments.Malformed(s.namespace+"/"+t.Name) != "":
		return notVerified(s.args, "Deployment "+t.Name+": "+a.facts.Deployments.Malformed(s.namespace+"/"+t.Name)), true
	case t.deployment == nil:
		f, _ := fault("no placeholder of this name in namespace " + s.namespace + ", where CPA looks" + a.elsewhere(t.Name))
		return orElsewhere(f, a.facts.Deployments, fmt.Sprintf("Deployment %s/%s is not among these files%s", s.namespace, t.Name, a.elsewhere(t.Name))), true
	case t.placeholder == nil:
		return fault(fmt.Sprintf("%s/%s is no placeholder: no label %s, and another priority class than %s",
			s.namespace, t.Name, placement.PoolLabel, a.config.Placeholders.PriorityClassName))
	}
	if pool := t.placeholder.PoolName(); pool != "" && pool != s.poolName() {
		return fault(fmt.Sprintf("is of pool %s, and another target of pool %s: both get the same count", pool, s.poolName()))
	}
	if other := a.sharedWith(s, t, i); other != "" {
		return fault(other + " scales it too: each undoes what the other one sets")
	}
	return Finding{}, false
}

// elsewhere says where there is a placeholder of the name.
func (a *Audit) elsewhere(name string) string {
	for _, o := range a.placeholders {
		if o.Name == name {
			return "; there is one in namespace " + o.Namespace
		}
	}
	return ""
}

// sharedWith is another running CPA that scales the same Deployment, or the same one that names it twice; empty: none.
func (a *Audit) sharedWith(s *autoscaler, t scaleTarget, i int) string {
	same := func(other scaleTarget) bool { return other.deployment == t.deployment }
	if slices.ContainsFunc(s.targets[:i], same) {
		return "an earlier entry"
	}
	for _, other := range a.autoscalers {
		if other != s && !other.paused() && !s.paused() && slices.ContainsFunc(other.targets, same) {
			return other.String()
		}
	}
	return ""
}

// countsInstead is the pool whose label --nodelabels asks for, where that is not the one that is scaled; nil: none.
func (a *Audit) countsInstead(s *autoscaler) *placement.Pool {
	selector, err := labels.Parse(s.flags["nodelabels"])
	if err != nil || s.pool == nil || len(selectedValues(selector, s.pool)) > 0 {
		return nil
	}
	for _, other := range a.pools.All() {
		if other != s.pool && asksFor(selector, other.Requirement.Key) && len(selectedValues(selector, other)) > 0 {
			return other
		}
	}
	return nil
}
