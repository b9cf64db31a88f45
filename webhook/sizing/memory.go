package sizing

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
)

// member is a node as one pool counts it.
type member struct {
	pool string
	node *corev1.Node
	// class are the DaemonSets that run there; nil: the node does not count.
	class *class
	// labels are those that it has in common with others of its type, and labelKey what tells them from others.
	labels   map[string]string
	labelKey string
}

// members are the node in each of its pools, with the taints that it will get there.
func (t *Tracker) members(node *corev1.Node, taints map[string][]corev1.Taint) []*member {
	var members []*member
	for _, key := range t.labelKeys {
		value, has := node.Labels[key]
		pool, ok := t.poolOf[[2]string{key, value}]
		if !has || !ok || slices.ContainsFunc(members, func(m *member) bool { return m.pool == pool }) {
			continue
		}
		m := &member{pool: pool, node: withTaints(node, taints[pool])}
		if counts(node) {
			m.class = t.classifier.of(m.node)
			m.labelKey, m.labels = typeLabels(node, key)
		}
		members = append(members, m)
	}
	return members
}

// memory is what pools count, by pool and name.
type memory map[string]map[string]*member

// of are the members of a pool by name.
func (m memory) of(pool string) []*member {
	return slices.SortedFunc(maps.Values(m[pool]), func(a, b *member) int { return strings.Compare(a.node.Name, b.node.Name) })
}

// replace has the object with the name count as the members, and calls changed with the pools in which that makes a
// difference.
func (m memory) replace(name string, members []*member, changed func(pool string)) {
	for pool, byName := range m {
		if byName[name] != nil {
			delete(byName, name)
			changed(pool)
		}
	}
	for _, one := range members {
		if m[one.pool] == nil {
			m[one.pool] = map[string]*member{}
		}
		m[one.pool][name] = one
		changed(one.pool)
	}
}

func (m memory) len() int {
	all := 0
	for _, byName := range m {
		all += len(byName)
	}
	return all
}

// eachChange calls do with the objects that changed; nil: one is gone.
func eachChange[T any](before, now cluster.Facts[T], do func(name string, object *T)) {
	keys, ok := now.ChangedSince(before)
	if !ok {
		all := map[string]bool{}
		for key := range before.All() {
			all[key] = true
		}
		for key := range now.All() {
			all[key] = true
		}
		keys = slices.Sorted(maps.Keys(all))
	}
	for _, key := range keys {
		do(key, now.Get(key))
	}
}
