package sizing

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
)

// Seen gives for each pool one real node that stands for each instance type: the one with the smallest allocatable that
// decides. A pool without nodes has an empty list.
func (s *Sizes) Seen(facts *cluster.Snapshot) map[string][]*corev1.Node {
	seen := make(map[string][]*corev1.Node, len(s.byPool))
	for pool, sizes := range s.byPool {
		seen[pool] = nil
		var types []string
		for _, shape := range sizes.Shapes {
			if shape.Source != FromNodes || slices.Contains(types, shape.InstanceType) {
				continue
			}
			if node := facts.Nodes.Get(shape.Offers[corev1.ResourceMemory].Node); node != nil {
				types = append(types, shape.InstanceType)
				seen[pool] = append(seen[pool], node)
			}
		}
	}
	return seen
}
