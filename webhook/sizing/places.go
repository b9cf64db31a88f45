package sizing

import (
	corev1 "k8s.io/api/core/v1"
)

// Places is how many default Workspaces of any of the templates a node of the pool takes, the last one perhaps in its
// placeholder's place: the least of all templates and shapes, and 1 where nothing tells.
func Places(shapes []*Shape, templates []Template) int {
	least := 0
	for _, shape := range shapes {
		available := shape.Available()
		for _, template := range templates {
			if n, known := timesIn(template.Default, available); known && (least == 0 || n < least) {
				least = max(n, 1)
			}
		}
	}
	return max(least, 1)
}

// Nodes is how many nodes of the smallest shape have room in what is left of limits; known is false where they name nothing that
// nodes have.
func Nodes(shapes []*Shape, left corev1.ResourceList) (most int, known bool) {
	for _, shape := range shapes {
		node := corev1.ResourceList{"nodes": oneDevice}
		for name, offer := range shape.Offers {
			node[name] = offer.Allocatable
		}
		for name := range node {
			if _, limited := left[name]; !limited {
				delete(node, name)
			}
		}
		if n, ok := timesIn(node, left); ok {
			most, known = max(most, n), true
		}
	}
	return most, known
}

// timesIn is how many times a request fits; known is false where it asks for nothing of what is known.
func timesIn(request, room corev1.ResourceList) (times int, known bool) {
	least := 0.0
	for name, quantity := range request {
		have, ok := room[name]
		if !ok || quantity.Sign() <= 0 {
			continue
		}
		n := max(have.AsApproximateFloat64(), 0) / quantity.AsApproximateFloat64()
		if !known || n < least {
			least, known = n, true
		}
	}
	const most = 1e6                         // beyond which the number says nothing
	return int(min(least+1e-9, most)), known // binary fractions of decimal ones
}
