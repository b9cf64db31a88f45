package lastseen

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Name is the ConfigMap's.
const Name = "warmpool-last-seen"

// What is kept is bounded: a ConfigMap holds 1 MiB, and no one needs to know every type that a pool ever had.
const (
	maxTypes = 20
	maxBytes = 256 << 10
)

// seen is what is kept of a node.
type seen struct {
	// Day is when a node of the type was last there, such as 2026-01-31; no finer, or the ConfigMap would never rest.
	Day         string              `json:"day"`
	Name        string              `json:"name"`
	Labels      map[string]string   `json:"labels,omitempty"`
	Taints      []corev1.Taint      `json:"taints,omitempty"`
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
}

// memory is what was seen, by pool and instance type.
type memory map[string]map[string]seen

// parse reads the ConfigMap's data. malformed says by pool what cannot be read.
func parse(data map[string]string) (m memory, malformed map[string]string) {
	m, malformed = memory{}, map[string]string{}
	for pool, text := range data {
		var types map[string]seen
		if err := json.Unmarshal([]byte(text), &types); err != nil {
			malformed[pool] = fmt.Sprintf("ConfigMap %s: data.%s: %v", Name, pool, err)
			continue
		}
		m[pool] = types
	}
	return m, malformed
}

// merge returns what is known when nodes were seen today, by configured pool: new types are added, changed ones
// replaced, pools that are not configured forgotten. Of several nodes of one type the first counts.
func (m memory) merge(pools map[string][]*corev1.Node, today string) memory {
	next := memory{}
	for pool, nodes := range pools {
		types := maps.Clone(m[pool])
		if types == nil {
			types = map[string]seen{}
		}
		present := map[string]bool{}
		for _, node := range nodes {
			instanceType := node.Labels[corev1.LabelInstanceTypeStable]
			if !present[instanceType] {
				present[instanceType] = true
				types[instanceType] = see(node, today).or(types[instanceType])
			}
		}
		next[pool] = types
	}
	return next
}

func see(node *corev1.Node, today string) seen {
	labels := maps.Clone(node.Labels)
	delete(labels, corev1.LabelHostname) // whatever asks for this host will not find it again
	return seen{Day: today, Name: node.Name, Labels: labels, Taints: node.Spec.Taints, Allocatable: node.Status.Allocatable}
}

// or keeps what was known before where only the name is new, as nodes come and go all day.
func (s seen) or(before seen) seen {
	same := before
	same.Name, same.Day = s.Name, s.Day
	if before.Name != "" && equality.Semantic.DeepEqual(same, s) {
		s.Name = before.Name
	}
	s.Day = max(s.Day, before.Day)
	return s
}

// upon adds what was known of the same pools: the later sight of a type wins.
func (m memory) upon(before memory) memory {
	next := memory{}
	for pool, types := range m {
		next[pool] = maps.Clone(types)
		for instanceType, old := range before[pool] {
			if s, ok := types[instanceType]; ok && s.Day >= old.Day {
				old = s.or(old)
			}
			next[pool][instanceType] = old
		}
	}
	return next
}

// encode returns the ConfigMap's data, without the types seen longest ago where there are too many.
func (m memory) encode() (map[string]string, error) {
	kept, err := m.newest()
	if err != nil {
		return nil, err
	}
	data := make(map[string]string, len(kept))
	for pool, types := range kept {
		text, err := json.Marshal(types)
		if err != nil {
			return nil, fmt.Errorf("encode what was seen of pool %s: %w", pool, err)
		}
		data[pool] = string(text)
	}
	return data, nil
}

// newest are the types seen last, as many as a pool may have and the ConfigMap holds.
func (m memory) newest() (map[string]map[string]json.RawMessage, error) {
	type entry struct {
		day, pool, instanceType string
		text                    json.RawMessage
	}
	var entries []entry
	for pool, types := range m {
		for instanceType, s := range types {
			text, err := json.Marshal(s)
			if err != nil {
				return nil, fmt.Errorf("encode what was seen of pool %s, type %s: %w", pool, instanceType, err)
			}
			entries = append(entries, entry{s.Day, pool, instanceType, text})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(b.day, a.day), cmp.Compare(a.pool, b.pool), cmp.Compare(a.instanceType, b.instanceType))
	})
	const around = len(`"":{},`) // of a pool and of a type
	kept, size := map[string]map[string]json.RawMessage{}, 0
	for _, e := range entries {
		cost := len(e.instanceType) + len(e.text) + around
		if kept[e.pool] == nil {
			cost += len(e.pool) + around
		}
		if size+cost > maxBytes || len(kept[e.pool]) >= maxTypes {
			continue
		}
		if kept[e.pool] == nil {
			kept[e.pool] = map[string]json.RawMessage{}
		}
		kept[e.pool][e.instanceType] = e.text
		size += cost
	}
	return kept, nil
}
