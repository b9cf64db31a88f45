package policy

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Applies to: pools with placeholders that a cluster runs; files tell nothing, unless they hold pods or say that none could
// be created, and 0 replicas are a pause.
// Requires: as many warm placeholders (their images pulled) as CPA's min or spec.replicas say, and at least 2.
// Why: with fewer the next Workspaces start cold, and nothing else shows that.
var warmCount = &Rule{
	ID:       "warm-count",
	Summary:  "The pool has its minimum of warm placeholders: running, with their images pulled.",
	Fix:      "Look at the findings placeholder-stuck, placeholder-pods and placeholder-size; if Workspaces took the warm nodes, the pool refills by itself.",
	Subject:  WarmPool,
	Severity: SeverityWarning,
	audit: func(a *Audit) {
		if a.unread("Pods", a.facts.Pods) {
			return
		}
		for _, pool := range a.pools.All() {
			judgeWarmCount(a, pool.Config.Name)
		}
	},
}

func judgeWarmCount(a *Audit, pool string) {
	path := field.NewPath("status", "readyReplicas")
	wanted, warm, pods := 0, 0, 0
	var first *Object
	var origins []string
	for _, o := range a.Of(pool) {
		own := a.Pods(o)
		switch d := o.Deployment; {
		case !a.facts.Pods.Whole() && len(own) < int(d.Status.Replicas):
			o.notVerified(path, "not all of its pods are among these files").withFix(elsewhereFix)
			continue
		case isPaused(d) || d.UID == "" && len(own) == 0 && podFailure(d) == nil:
			continue
		}
		least, origin := a.leastWarm(o)
		wanted, origins = wanted+least, append(origins, fmt.Sprintf("%d by %s of %s/%s", least, origin, o.Namespace, o.Name))
		pods, first = pods+len(own), cmp.Or(first, o)
		for _, pod := range own {
			if IsWarm(pod) {
				warm++
			}
		}
	}
	if least := max(wanted, 2); first != nil && warm < least {
		f := first.invalid(path, warm, "%d of %d placeholder pods of pool %s are warm, and at least %d should be (%s; never below 2)", warm, pods, pool, least, clipped(origins))
		if wanted < 2 {
			f.withFix("Set replicas, or CPA's min, to 2 or more.")
		}
	}
}

// leastWarm is how many pods of a placeholder should be warm at any time, and what says so.
func (a *Audit) leastWarm(o *Object) (least int, origin string) {
	if s := a.scaledBy(o); s != nil && s.Params != nil && s.Linear != nil {
		return max(s.Linear.Min, 1), "min of " + s.String() + " for replicas"
	}
	return int(max(ReplicasOf(o.Deployment), 0)), "spec.replicas"
}
