package sizing

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
)

// mostValues of a label are listed; one that differs from node to node tells nothing of a pool.
const mostValues = 64

// labelCounts are the labels of some nodes.
type labelCounts struct {
	nodes int
	byKey map[string]*valueCounts
	made  *cluster.NodeLabels // nil: to be made anew
}

type valueCounts struct {
	nodes   int // that have the label
	byValue map[string]int
}

// count takes a node in, or out by -1. What nodes have in common, and so what is made of it, mostly stays.
func (c *labelCounts) count(node *corev1.Node, by int) {
	c.nodes += by
	same := c.made != nil
	for key, value := range node.Labels {
		if key == corev1.LabelHostname {
			continue
		}
		v := c.byKey[key]
		if v == nil {
			v = &valueCounts{byValue: map[string]int{}}
			c.byKey[key] = v
		}
		listed := len(v.byValue) <= mostValues
		v.nodes += by
		v.byValue[value] += by
		switch v.byValue[value] {
		case 0:
			delete(v.byValue, value)
			same = same && !listed && len(v.byValue) > mostValues
		case by:
			same = same && !listed
		}
		if v.nodes == 0 {
			delete(c.byKey, key)
		}
	}
	if !same || !c.isCurrent() {
		c.made = nil
	}
}

// isCurrent tells whether every label is on all nodes, or not, as it was said to be.
func (c *labelCounts) isCurrent() bool {
	for key, v := range c.byKey {
		if c.made.ByKey[key].All != (v.nodes == c.nodes) {
			return false
		}
	}
	return (c.made.Nodes == 0) == (c.nodes == 0)
}

func (c *labelCounts) make() cluster.NodeLabels {
	if c.made == nil {
		c.made = &cluster.NodeLabels{ByKey: make(map[string]cluster.SeenLabel, len(c.byKey))}
		for key, v := range c.byKey {
			label := cluster.SeenLabel{All: v.nodes == c.nodes}
			if len(v.byValue) <= mostValues {
				label.Values = slices.Sorted(maps.Keys(v.byValue))
			}
			c.made.ByKey[key] = label
		}
	}
	return cluster.NodeLabels{Nodes: c.nodes, ByKey: c.made.ByKey}
}

// countLabels counts the labels of a node of the group by the value of the label that marks it.
func (g *group) countLabels(node *corev1.Node, by int) {
	value := node.Labels[g.poolLabel]
	counts := g.labels[value]
	if counts == nil {
		counts = &labelCounts{byKey: map[string]*valueCounts{}}
		g.labels[value] = counts
	}
	counts.count(node, by)
	if counts.nodes == 0 {
		delete(g.labels, value)
	}
}

func (g *group) nodeLabels() map[string]cluster.NodeLabels {
	all := make(map[string]cluster.NodeLabels, len(g.labels))
	for value, counts := range g.labels {
		all[value] = counts.make()
	}
	return all
}

// hostnameKey is where a node is found by its label kubernetes.io/hostname, which is not always its name.
func hostnameKey(node *corev1.Node) []byte {
	hostname := node.Labels[corev1.LabelHostname]
	if hostname == "" {
		hostname = node.Name
	}
	return []byte(hostname + "\x00" + node.Name)
}

// ByHostname are the nodes with the label kubernetes.io/hostname.
func (s *Sizes) ByHostname(hostname string) []*corev1.Node {
	var nodes []*corev1.Node
	if s.hostnames != nil {
		s.hostnames.Root().WalkPrefix([]byte(hostname+"\x00"), func(_ []byte, node *corev1.Node) bool {
			nodes = append(nodes, node)
			return false
		})
	}
	return nodes
}
