package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Applies to: NodePools of the pools that start nodes for pods.
// Requires: spec.limits, with the accelerators of a pool that has some, none of them 0, and together enough for as many
// nodes as the pool's placeholders may become.
// Why: without limits a CPA that runs away starts nodes until the account is empty; with too low ones placeholders stay
// Pending, and the pool is smaller than its CPA says.
var nodePoolLimits = &Rule{
	ID:        "nodepool-limits",
	Summary:   "The NodePool has limits, on accelerators too where the pool has some, and they are enough for all placeholders that the pool's CPA may ask for.",
	Fix:       "Set spec.limits to what the pool may cost at most: cpu, memory and each accelerator.",
	Subject:   NodePool,
	Action:    config.Audit,
	Severity:  SeverityWarning,
	AuditOnly: true,
	around:    checkNodePoolLimits,
}

var limitsPath = field.NewPath("spec", "limits")

// nodesLimit is the limit that counts nodes.
const nodesLimit = corev1.ResourceName("nodes")

func checkNodePoolLimits(a *Audit) []Finding {
	findings := a.eachNodePool(func(np poolNodePool) []Finding {
		if np.Static {
			return nil
		}
		return limitFindings(np, a.pools.Get(np.pool))
	})
	for _, pool := range a.pools.All() {
		for _, f := range enoughFindings(a, pool) {
			findings = append(findings, f.about("NodePool", "", pool.NodePools[0].Name, pool.Config.Name))
		}
	}
	return findings
}

func limitFindings(np poolNodePool, pool *placement.Pool) []Finding {
	if len(np.Limits) == 0 {
		return []Finding{required(limitsPath, "nothing bounds how many nodes Karpenter starts for this NodePool")}
	}
	var findings []Finding
	_, bounded := np.Limits[nodesLimit]
	for _, name := range slices.Sorted(maps.Keys(np.Limits)) {
		limit := np.Limits[name]
		bounded = bounded || len(pool.Config.Accelerators) > 0 && pool.Offers([]string{string(name)})
		if limit.Sign() <= 0 {
			findings = append(findings, invalid(limitsPath.Key(string(name)), limit.String(), "Karpenter starts no node for this NodePool").
				withFix("Raise the limit, or take the NodePool out of the configuration."))
		}
	}
	if len(pool.Config.Accelerators) > 0 && !bounded {
		message := fmt.Sprintf("nothing bounds the accelerators of pool %s (%s), which cost most", pool.Config.Name, strings.Join(pool.Config.Accelerators, ", "))
		findings = append(findings, required(limitsPath, message))
	}
	return findings
}

// enoughFindings hold the limits of all NodePools of the pool together against the nodes that its placeholders may need,
// one each. Every number is the least that it can be, so what is found is certain.
func enoughFindings(a *Audit, pool *placement.Pool) []Finding {
	limits := commonLimits(pool)
	replicas, who := a.mostReplicas(pool)
	if len(limits) == 0 || replicas == 0 {
		return nil
	}
	sizes := a.sizes.Pool(pool.Config.Name)
	_, countsNodes := limits[nodesLimit]
	if len(sizes.Shapes) == 0 && !countsNodes {
		return []Finding{notVerified(limitsPath, fmt.Sprintf("enough for %d nodes? %s", replicas, cmp.Or(sizes.Unknown, "no node tells its size")))}
	}
	var names []string
	for _, np := range pool.NodePools {
		names = append(names, np.Name)
	}
	var findings []Finding
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		limit := limits[name]
		need, each := leastOf(a, pool, name, replicas)
		if need.Cmp(limit) <= 0 || limit.Sign() <= 0 {
			continue
		}
		message := fmt.Sprintf("%s take one node each, %s together%s, and %s may have %s", who, need.String(), each, clip(strings.Join(names, " with ")), limit.String())
		findings = append(findings, invalid(limitsPath.Key(string(name)), limit.String(), message).
			withFix("Raise the limit, or lower max of the CPA or replicas of the placeholder."))
	}
	return findings
}

// commonLimits are the sums of the limits that all NodePools of the pool have; none where one keeps a fixed number of
// nodes or cannot be read.
func commonLimits(pool *placement.Pool) corev1.ResourceList {
	var sums corev1.ResourceList
	for i, np := range pool.NodePools {
		if np.Static || np.Problem != "" {
			return nil
		}
		if i == 0 {
			sums = maps.Clone(np.Limits)
			continue
		}
		for name, sum := range sums {
			limit, ok := np.Limits[name]
			if !ok {
				delete(sums, name)
				continue
			}
			sum = sum.DeepCopy()
			sum.Add(limit)
			sums[name] = sum
		}
	}
	return sums
}
