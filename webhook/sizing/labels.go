package sizing

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
)

// mostValues of a label are listed; one that differs from node to node tells nothing of a pool.
const mostValues = 64

// labelCounts are the labels of some nodes.
type labelCounts struct {
	nodes int
	byKey map[string]*valueCounts
}

type valueCounts struct {
	nodes  int // that have the label
	values map[string]bool
}

// labelsOf are the labels of nodes of a pool, by the value of the label that marks them.
func labelsOf(members []*member, poolLabel string) map[string]cluster.NodeLabels {
	byValue := map[string]*labelCounts{}
	for _, m := range members {
		value := m.node.Labels[poolLabel]
		if byValue[value] == nil {
			byValue[value] = &labelCounts{byKey: map[string]*valueCounts{}}
		}
		byValue[value].count(m.node)
	}
	all := make(map[string]cluster.NodeLabels, len(byValue))
	for value, counts := range byValue {
		all[value] = counts.labels()
	}
	return all
}

func (c *labelCounts) count(node *corev1.Node) {
	c.nodes++
	for key, value := range node.Labels {
		if key == corev1.LabelHostname {
			continue
		}
		v := c.byKey[key]
		if v == nil {
			v = &valueCounts{values: map[string]bool{}}
			c.byKey[key] = v
		}
		v.nodes++
		if len(v.values) <= mostValues {
			v.values[value] = true
		}
	}
}

func (c *labelCounts) labels() cluster.NodeLabels {
	labels := cluster.NodeLabels{Nodes: c.nodes, ByKey: make(map[string]cluster.SeenLabel, len(c.byKey))}
	for key, v := range c.byKey {
		label := cluster.SeenLabel{All: v.nodes == c.nodes}
		if len(v.values) <= mostValues {
			label.Values = slices.Sorted(maps.Keys(v.values))
		}
		labels.ByKey[key] = label
	}
	return labels
}

// byHostname are the nodes by their label kubernetes.io/hostname.
func byHostname(nodes map[string]*corev1.Node) map[string][]*corev1.Node {
	all := map[string][]*corev1.Node{}
	for _, node := range nodes {
		hostname := node.Labels[corev1.LabelHostname]
		all[hostname] = append(all[hostname], node)
	}
	return all
}

// ByHostname are the nodes with the label kubernetes.io/hostname, for which the name stands where it is not there.
func (s *Sizes) ByHostname(hostname string) []*corev1.Node {
	nodes := slices.Clone(s.byHostname[hostname])
	if node := s.nodes.Get(hostname); node != nil {
		if label := node.Labels[corev1.LabelHostname]; label == "" || label == hostname {
			nodes = append(nodes, node)
		}
	}
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return nodes
}
