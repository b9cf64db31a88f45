package policy

import (
	"cmp"

	"warmpool.sh/webhook/config"
)

// Applies to: placeholders of pools that Cluster Autoscaler runs.
// Requires: a PriorityClass with a value of -10 or more.
// Why: below its cut-off (flag --expendable-pods-priority-cutoff) Cluster Autoscaler takes pods for expendable: they start
// no node and hold none, so there is no warm pool. Karpenter knows no such thing.
var clusterAutoscalerCutoff = &Rule{
	ID:       "cluster-autoscaler-cutoff",
	Summary:  "Placeholders of a pool that Cluster Autoscaler runs have a priority of -10 or more: below it they start no node and hold none.",
	Fix:      "Give the pool's placeholders a PriorityClass of their own with a value from -10 to -1; or lower --expendable-pods-priority-cutoff and turn this rule off.",
	Subject:  WarmPool,
	Severity: SeverityError,
	audit: func(a *Audit) {
		for _, pool := range a.pools.All() {
			if pool.Config.Autoscaler == config.ClusterAutoscaler {
				a.unread("Deployments", a.facts.Deployments)
				for _, o := range a.Of(pool.Config.Name) {
					judgeCutoff(a, o)
				}
			}
		}
	},
}

const expendablePriority = -10

// judgeCutoff goes by the class that admission fills in where the placeholder names none. A class that does not exist is
// placeholder-priority's.
func judgeCutoff(a *Audit, o *Object) {
	path, classes := o.specPath("priorityClassName"), a.facts.PriorityClasses
	name := cmp.Or(o.Spec.PriorityClassName, a.config.Placeholders.PriorityClassName)
	class := classes.Get(name)
	if why := classes.Unreadable("PriorityClasses", "PriorityClass "+name, name); why != "" {
		o.notVerified(path, "%s", why)
	} else if class != nil && class.Value < expendablePriority {
		o.invalid(path, name, "value %d is below the Cluster Autoscaler cut-off (%d): pods below it start no node and hold none", class.Value, expendablePriority)
	}
}
