package sizing

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"warmpool.sh/webhook/config"
)

// TooLarge is a DaemonSet of which one pod alone asks for more than any node of a shape has: none runs there.
type TooLarge struct {
	*Daemon
	// Resource is the first by name of which it asks for too much, Most what the largest of the nodes has of it.
	Resource corev1.ResourceName
	Most     resource.Quantity
}

// tooLarge are such DaemonSets. A device of which all nodes list none may appear when its plugin starts.
func tooLarge(daemons []*Daemon, offers map[corev1.ResourceName]*offered) []TooLarge {
	var found []TooLarge
	for _, d := range daemons {
		if d.nodes != nil {
			continue // static pods do run
		}
		for _, name := range slices.Sorted(maps.Keys(d.Request)) {
			if offers[name] == nil {
				continue
			}
			quantity, most := d.Request[name], offers[name].most.Status.Allocatable[name]
			if most.Sign() > 0 && quantity.Cmp(most) > 0 {
				found = append(found, TooLarge{d, name, most})
				break
			}
		}
	}
	return found
}

// String says what is too large, such as "a/b alone asks for cpu 64, more than there is (16)".
func (t TooLarge) String() string {
	quantity := t.Request[t.Resource]
	return fmt.Sprintf("%s alone asks for %s %s, more than there is (%s)", t.Name, t.Resource, quantity.String(), t.Most.String())
}

// takers are the DaemonSets that take most of a resource, in brackets.
func (s *Shape) takers(name corev1.ResourceName) string {
	var parts []string
	for _, d := range s.Largest(name) {
		quantity := d.Request[name]
		parts = append(parts, d.Name+" "+quantity.String())
	}
	if len(parts) == 0 {
		return ""
	}
	return " (largest: " + strings.Join(parts, ", ") + ")"
}

// notCounted says of the shape's DaemonSets that run nowhere that they are not counted.
func (s *Shape) notCounted(karpenter bool) []string {
	but := ""
	if karpenter {
		but = "; but Karpenter counts it, and starts no such node"
	}
	var all []string
	for _, t := range s.TooLarge {
		all = append(all, fmt.Sprintf("DaemonSet %s on %s, so none of its pods runs there and it is not counted%s", t, s.NameAmong(nil), but))
	}
	return all
}

// startsNone tells that no one starts nodes for pods of the pool.
func (t *Tracker) startsNone(pool *config.Pool) bool {
	if pool.Autoscaler == config.NoAutoscaler {
		return true
	}
	for _, name := range pool.NodePools {
		if np := t.facts.NodePools.Get(name); np == nil || !np.Static {
			return false
		}
	}
	return len(pool.NodePools) > 0
}

// sumOf is what the DaemonSets ask for together.
func sumOf(daemons []*Daemon) corev1.ResourceList {
	total := corev1.ResourceList{}
	for _, d := range daemons {
		for name, quantity := range d.Request {
			sum := total[name]
			sum.Add(quantity)
			total[name] = sum
		}
	}
	return total
}
