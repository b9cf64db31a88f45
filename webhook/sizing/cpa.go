package sizing

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Linear is the linear mode of the Cluster Proportional Autoscaler (CPA) 1.10: one replica for so many cores and one
// for so many nodes, whichever gives more. A ratio of 0 is not set.
type Linear struct {
	CoresPerReplica           float64 `json:"coresPerReplica,omitempty"`
	NodesPerReplica           float64 `json:"nodesPerReplica,omitempty"`
	Min                       int     `json:"min,omitempty"`
	Max                       int     `json:"max,omitempty"` // 0: no maximum
	PreventSinglePointFailure bool    `json:"preventSinglePointFailure,omitempty"`
}

// Replicas is the count that CPA sets when it counts the nodes and their allocatable cores. The parameters must be ones
// that CPA takes: none negative, a ratio set, and Max not below Min.
func (l Linear) Replicas(nodes int, cores float64) int {
	replicas := max(l.replicas(cores, l.CoresPerReplica), l.replicas(float64(nodes), l.NodesPerReplica))
	if l.PreventSinglePointFailure && nodes > 1 {
		replicas = max(replicas, 2) // even beyond Max
	}
	return replicas
}

func (l Linear) replicas(have, perReplica float64) int {
	if perReplica == 0 {
		return 1 // whatever Min says
	}
	count := math.Ceil(have / perReplica)
	if l.Max != 0 {
		count = min(count, float64(l.Max))
	}
	return int(min(max(count, float64(l.Min), 1), math.MaxInt32))
}

// FixedPoint is where the count settles, coming from few, when CPA counts otherNodes nodes and those of the placeholders
// themselves, one each, all with coresPerNode cores. runaway tells that every placeholder's node calls for one more:
// replicas is then what Max stops it at, or 0 where nothing does.
func (l Linear) FixedPoint(otherNodes int, coresPerNode float64) (replicas int, runaway bool) {
	other, settled := float64(max(otherNodes, 0)), 0.0
	for _, nodesPerReplica := range []float64{l.NodesPerReplica, l.CoresPerReplica / coresPerNode} {
		switch {
		case nodesPerReplica == 0 || math.IsNaN(nodesPerReplica): // not set
		case nodesPerReplica > 1:
			// replicas ≥ (other + replicas) / nodesPerReplica
			settled = max(settled, math.Ceil(other/(nodesPerReplica-1)))
		case nodesPerReplica < 1 || other > 0:
			runaway = true
		}
	}
	if runaway && l.Max == 0 {
		return 0, true
	}
	// From just below, CPA's own arithmetic finds the count within few steps.
	replicas = int(min(max(settled-1, 0), math.MaxInt32))
	if l.Max != 0 && (runaway || replicas > l.Max) {
		replicas = l.Max
	}
	for range 100 {
		nodes := max(otherNodes, 0) + replicas
		next := l.Replicas(nodes, float64(nodes)*coresPerNode)
		if next == replicas {
			break
		}
		replicas = next
	}
	return replicas, runaway
}

// FromAbove is where the count settles, coming from many, as after a busy day: it can be more than FixedPoint's, since a
// count that calls for its own nodes keeps them. A ratio that runs away stays at its maximum, or has no end (0).
func (l Linear) FromAbove(otherNodes int, coresPerNode float64) int {
	settled, runaway := l.FixedPoint(otherNodes, coresPerNode)
	if runaway {
		return settled
	}
	// Beyond twice the count no ratio holds its own nodes; a ratio close to 1 may, within a few nodes.
	replicas := 2*settled + 2
	if l.Max != 0 {
		replicas = max(l.Max, settled)
	}
	for range 100 {
		nodes := max(otherNodes, 0) + replicas
		next := l.Replicas(nodes, float64(nodes)*coresPerNode)
		if next >= replicas {
			break
		}
		replicas = next
	}
	return replicas
}

// Cores is a quantity of cpu as CPA counts it, to the thousandth: a number that prints as people write it.
func Cores(cpu resource.Quantity) float64 { return float64(cpu.MilliValue()) / 1000 }

// Ratio is a suggestion for CPA.
type Ratio struct {
	Linear
	// Replicas is where the count settles coming from few, FromAbove coming from many.
	Replicas, FromAbove int
	// Why says in a clause what the ratio means.
	Why string
}

// Ratios are suggestions that do not run away in a pool with otherNodes nodes beside the placeholders' own, most warm
// nodes first: by nodes, then, where coresPerNode is known, by cores. coresPerNode must be the allocatable cores of the
// pool's largest type: a placeholder may land there and add as many.
//
// At n nodes for each replica, n − 1 other nodes call for one warm node, because the warm node is counted too. So 2 is
// the least that is safe; with 1 every placeholder calls for the next. Cores are the same with n × the node's cores. Each has
// a min of 2, below which nothing is warm while the only placeholder is refilled, and a max, twice where it settles now: without
// one a wrong ratio has no end.
func Ratios(otherNodes int, coresPerNode float64) []Ratio {
	var ratios []Ratio
	suggest := func(linear Linear, why string) {
		linear.Min, linear.PreventSinglePointFailure = 2, true
		replicas, _ := linear.FixedPoint(otherNodes, coresPerNode)
		linear.Max = 2 * replicas
		ratios = append(ratios, Ratio{Linear: linear, Replicas: replicas, FromAbove: linear.FromAbove(otherNodes, coresPerNode), Why: why})
	}
	for _, n := range []float64{2, 5, 10} {
		suggest(Linear{NodesPerReplica: n}, fmt.Sprintf("one warm node for every %s in use", nodesInUse(n)))
	}
	if coresPerNode > 0 {
		for _, n := range []float64{2, 5, 10} {
			suggest(Linear{CoresPerReplica: math.Ceil(n * coresPerNode)}, fmt.Sprintf("one warm node for every %s of %g cores in use", nodesInUse(n), coresPerNode))
		}
	}
	return ratios
}

func nodesInUse(n float64) string {
	if n == 2 {
		return "node"
	}
	return fmt.Sprintf("%g nodes", n-1)
}
