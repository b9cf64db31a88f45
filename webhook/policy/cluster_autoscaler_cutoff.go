package policy

import (
	"cmp"
	"fmt"

	"warmpool.sh/webhook/config"
)

// Applies to: placeholders of pools that Cluster Autoscaler runs.
// Requires: a PriorityClass with a value of -10 or more.
// Why: below its cut-off (flag --expendable-pods-priority-cutoff) Cluster Autoscaler takes pods for expendable: they start
// no node and hold none, so there is no warm pool. Karpenter knows no such thing.
var clusterAutoscalerCutoff = &Rule{
	ID:        "cluster-autoscaler-cutoff",
	Summary:   "Placeholders of a pool that Cluster Autoscaler runs have a priority of -10 or more: below it they start no node and hold none.",
	Fix:       "Give the pool's placeholders a PriorityClass of their own with a value from -10 to -1; or lower --expendable-pods-priority-cutoff and turn this rule off.",
	Subject:   WarmPool,
	Action:    config.Audit,
	Severity:  SeverityError,
	AuditOnly: true,
	around:    checkAutoscalerCutoff,
}

const expendablePriority = -10

func checkAutoscalerCutoff(a *Audit) []Finding {
	var findings []Finding
	for _, pool := range a.pools.All() {
		if pool.Config.Autoscaler != config.ClusterAutoscaler {
			continue
		}
		findings = append(findings, unread("Deployments", a.facts.Deployments)...)
		for _, o := range a.of(pool.Config.Name) {
			if f, found := cutoffOf(a, o); found {
				findings = append(findings, f.about("Deployment", o.Namespace, o.Name, pool.Config.Name))
			}
		}
	}
	return findings
}

// cutoffOf goes by the class that admission fills in where the placeholder names none. A class that does not exist is
// placeholder-priority's.
func cutoffOf(a *Audit, o *Object) (f Finding, found bool) {
	path := o.specPath("priorityClassName")
	name := cmp.Or(o.Spec.PriorityClassName, a.config.Placeholders.PriorityClassName)
	classes := a.facts.PriorityClasses
	switch class := classes.Get(name); {
	case !classes.Known():
		return notVerified(path, "PriorityClasses: "+classes.Reason()), true
	case class == nil && classes.Malformed(name) != "":
		return notVerified(path, fmt.Sprintf("PriorityClass %s: %s", name, classes.Malformed(name))), true
	case class == nil || class.Value >= expendablePriority:
		return Finding{}, false
	default:
		return invalid(path, name, fmt.Sprintf("value %d is below the Cluster Autoscaler cut-off (%d): pods below it start no node and hold none", class.Value, expendablePriority)), true
	}
}
