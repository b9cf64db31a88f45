package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/sizing"
)

// Applies to: DaemonSets that are meant for the nodes of a pool, anyone's, where Karpenter starts these nodes.
// Requires: that one of their pods alone asks for no more than these nodes have.
// Why: none of their pods ever runs there, so that they take no room from placeholders and Workspaces; but Karpenter counts
// them as if they ran, and then starts no such node for any pod. Whoever may make a DaemonSet in some namespace can do that.
var daemonSetTooLarge = &Rule{
	ID:       "daemonset-too-large",
	Summary:  "No DaemonSet that is meant for the pool's nodes alone asks for more than they have: Karpenter counts it all the same, and starts no such node.",
	Fix:      "Have the DaemonSet ask for less, exclude the pool's nodes by its node affinity, or delete it; a ResourceQuota bounds what its namespace may ask for.",
	Subject:  Workload,
	Severity: SeverityError,
	audit: func(a *Audit) {
		a.unread("DaemonSets", a.facts.DaemonSets)
		for _, pool := range a.pools.All() {
			if pool.Config.Autoscaler == config.Karpenter && !pool.Static {
				judgeDaemonSets(a, pool.Config.Name)
			}
		}
	},
}

func judgeDaemonSets(a *Audit, pool string) {
	shapes := a.sizes.Pool(pool).Shapes
	types := map[string][]string{} // by the DaemonSet's name
	largest := map[string]sizing.TooLarge{}
	for _, shape := range shapes {
		for _, t := range shape.TooLarge {
			types[t.Name] = append(types[t.Name], shape.NameAmong(shapes))
			if most := largest[t.Name]; most.Daemon == nil || t.Resource == most.Resource && t.Most.Cmp(most.Most) > 0 {
				largest[t.Name] = t
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(types)) {
		t, effect, severity := largest[key], "Karpenter starts no node for pool "+pool, SeverityError
		if len(types[key]) < len(shapes) {
			effect, severity = "Karpenter starts no such node", SeverityWarning
		}
		asked := t.Request[t.Resource]
		namespace, name, _ := strings.Cut(key, "/")
		a.about("DaemonSet", namespace, name, pool).invalid(templateSpecPath.Child("containers"), fmt.Sprintf("%s: %s", t.Resource, asked.String()),
			"alone asks for %s %s, and nodes of pool %s have %s at most (%s): none of its pods runs there, and it takes no room; %s while it is there",
			t.Resource, asked.String(), pool, t.Most.String(), clipped(types[key]), effect).milder(severity)
	}
}
