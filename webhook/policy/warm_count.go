package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
)

// Applies to: pools with placeholders that a cluster runs; files tell nothing, unless they hold pods or say that none could
// be created, and 0 replicas are a pause.
// Requires: as many warm placeholders (their images pulled) as CPA's min or spec.replicas say, and at least 2.
// Why: with fewer the next Workspaces start cold, and nothing else shows that.
var warmCount = &Rule{
	ID:        "warm-count",
	Summary:   "The pool has its minimum of warm placeholders: running, with their images pulled.",
	Fix:       "Look at the findings placeholder-stuck, placeholder-pods and placeholder-size; if Workspaces took the warm nodes, the pool refills by itself.",
	Subject:   WarmPool,
	Action:    config.Audit,
	Severity:  SeverityWarning,
	AuditOnly: true,
	around:    checkWarmCount,
}

func checkWarmCount(a *Audit) []Finding {
	findings := unread("Pods", a.facts.Pods)
	if len(findings) > 0 {
		return findings
	}
	for _, pool := range a.pools.All() {
		name := pool.Config.Name
		wanted, found, pods := 0, 0, 0
		var first *Object
		var unknown []*Object
		var origins []string
		for _, o := range a.of(name) {
			own := a.pods(o)
			if lacksPods(a, o, own) {
				unknown = append(unknown, o)
				continue
			}
			if replicasOf(o.Deployment) == 0 || o.Deployment.UID == "" && len(own) == 0 && podFailure(o.Deployment) == nil {
				continue
			}
			least, origin := a.leastWarm(o)
			wanted, origins = wanted+least, append(origins, fmt.Sprintf("%d by %s of %s/%s", least, origin, o.Namespace, o.Name))
			pods, found = pods+len(own), found+countWarm(own)
			first = cmp.Or(first, o)
		}
		for _, o := range unknown {
			findings = append(findings, notVerified(field.NewPath("status", "readyReplicas"), "not all of its pods are among these files").
				withFix(elsewhereFix).about("Deployment", o.Namespace, o.Name, name))
		}
		if least := max(wanted, 2); len(origins) > 0 && found < least {
			f := invalid(field.NewPath("status", "readyReplicas"), found, fmt.Sprintf("%d of %d placeholder pods of pool %s are warm, and at least %d should be (%s; never below 2)",
				found, pods, name, least, clip(strings.Join(origins, ", "))))
			if wanted < 2 {
				f = f.withFix("Set replicas, or CPA's min, to 2 or more.")
			}
			findings = append(findings, f.about("Deployment", first.Namespace, first.Name, name))
		}
	}
	return findings
}

func countWarm(pods []*corev1.Pod) int {
	return len(pods) - len(slices.DeleteFunc(slices.Clone(pods), warm))
}

// lacksPods tells that files hold fewer pods of a placeholder than it has.
func lacksPods(a *Audit, o *Object, own []*corev1.Pod) bool {
	return !a.facts.Pods.Whole() && len(own) < int(o.Deployment.Status.Replicas)
}

// leastWarm is how many pods of a placeholder should be warm at any time, and what says so.
func (a *Audit) leastWarm(o *Object) (least int, origin string) {
	if s := a.scaledBy(o); s != nil {
		if p := s.params.autoscalerParams; p != nil && p.Linear != nil {
			return max(p.Linear.Min, 1), "min of " + s.String() + " for replicas"
		}
	}
	return int(max(replicasOf(o.Deployment), 0)), "spec.replicas"
}
