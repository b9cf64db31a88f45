package policy

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/sizing"
)

// Applies to: NodePools of the pools that start nodes for pods.
// Requires: spec.limits, with the accelerators of a pool that has some, none of them 0, and together enough for as many
// nodes as the pool's placeholders may become.
// Why: without limits a CPA that runs away starts nodes until the account is empty; with too low ones placeholders stay
// Pending, and the pool is smaller than its CPA says.
var nodePoolLimits = &Rule{
	ID:       "nodepool-limits",
	Summary:  "The NodePool has limits, on accelerators too where the pool has some, and they are enough for all placeholders that the pool's CPA may ask for.",
	Fix:      "Set spec.limits to what the pool may cost at most: cpu, memory and each accelerator.",
	Subject:  NodePool,
	Severity: SeverityWarning,
	audit: func(a *Audit) {
		a.eachNodePool(judgeLimits)
		for _, pool := range a.pools.All() {
			judgeEnough(a, pool)
		}
	},
}

var limitsPath = field.NewPath("spec", "limits")

// nodesLimit is the limit that counts nodes.
const nodesLimit = corev1.ResourceName("nodes")

func judgeLimits(np poolNodePool) {
	switch {
	case np.Static:
		return
	case len(np.Limits) == 0:
		np.required(limitsPath, "nothing bounds how many nodes Karpenter starts for this NodePool")
		return
	}
	accelerators := np.of.Config.Accelerators
	bounded := has(np.Limits, nodesLimit)
	for _, name := range sortedNames(np.Limits) {
		limit := np.Limits[name]
		bounded = bounded || len(accelerators) > 0 && np.of.Offers([]string{string(name)})
		if limit.Sign() <= 0 {
			np.invalid(limitsPath.Key(string(name)), limit.String(), "Karpenter starts no node for this NodePool").
				withFix("Raise the limit, or take the NodePool out of the configuration.")
		}
	}
	if len(accelerators) > 0 && !bounded {
		np.required(limitsPath, "nothing bounds the accelerators of pool %s (%s), which cost most", np.pool, strings.Join(accelerators, ", "))
	}
}

// judgeEnough holds the limits of all NodePools of the pool together against the nodes that its placeholders may need,
// one each. Every number is the least that it can be, so what is found is certain.
func judgeEnough(a *Audit, pool *placement.Pool) {
	limits := commonLimits(pool)
	replicas, who := a.mostReplicas(pool)
	if len(limits) == 0 || replicas == 0 {
		return
	}
	sizes, about := a.sizes.Pool(pool.Config.Name), a.about("NodePool", "", pool.NodePools[0].Name, pool.Config.Name)
	if len(sizes.Shapes) == 0 && !has(limits, nodesLimit) {
		about.notVerified(limitsPath, "enough for %d nodes? %s", replicas, cmp.Or(sizes.Unknown, "no node says its size"))
		return
	}
	var names []string
	for _, np := range pool.NodePools {
		names = append(names, np.Name)
	}
	for _, name := range sortedNames(limits) {
		limit := limits[name]
		need, each := leastOf(sizes.Shapes, name, replicas)
		if need.Cmp(limit) > 0 && limit.Sign() > 0 {
			about.invalid(limitsPath.Key(string(name)), limit.String(), "%s take one node each, %s together%s, and %s may have %s",
				who, need.String(), each, clip(strings.Join(names, " with ")), limit.String()).
				withFix("Raise the limit, or lower max of the CPA or replicas of the placeholder.")
		}
	}
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

// mostReplicas is the largest number of pods that one placeholder of the pool may have, and whose, in words. Only one
// counts: whether several placeholders share nodes is not known here.
func (a *Audit) mostReplicas(pool *placement.Pool) (most int, who string) {
	for _, o := range a.Of(pool.Config.Name) {
		replicas := int(ReplicasOf(o.Deployment))
		whose := fmt.Sprintf("the %d replicas of placeholder %s/%s", replicas, o.Namespace, o.Name)
		if s := a.scaledBy(o); s != nil && s.Most() > 0 {
			replicas = s.Most()
			whose = fmt.Sprintf("the %d replicas that %s may set for placeholder %s", replicas, s, o.Name)
		}
		if replicas > most {
			most, who = replicas, whose
		}
	}
	return most, who
}

// leastOf is the least that so many nodes have together of what a limit counts, and in words what each has; 0 where it
// is not known. What is allocatable is less than the capacity that Karpenter counts.
func leastOf(shapes []*sizing.Shape, name corev1.ResourceName, nodes int) (need resource.Quantity, each string) {
	if name == nodesLimit {
		return *resource.NewQuantity(int64(nodes), resource.DecimalSI), ""
	}
	var least *resource.Quantity
	for _, shape := range shapes {
		offer, known := shape.Offers[name]
		if !known {
			return resource.Quantity{}, ""
		}
		if least == nil || offer.Allocatable.Cmp(*least) < 0 {
			least = &offer.Allocatable
		}
	}
	if least == nil {
		return resource.Quantity{}, ""
	}
	need = least.DeepCopy()
	if !need.Mul(int64(nodes)) {
		return resource.Quantity{}, ""
	}
	return need, fmt.Sprintf(" (%s a node or more)", least.String())
}
