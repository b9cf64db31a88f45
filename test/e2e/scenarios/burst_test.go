package scenarios_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/test/harness/simulation"
)

// burst starts ten Workspaces on three warm nodes.
func (l *lab) burst(t *testing.T, cpu int64) (warm, new []simulation.Startup) {
	t.Helper()
	var names []string
	for i := range 10 {
		w := simulation.Workspace{Name: fmt.Sprintf("burst-%d-%d", cpu, i), Kind: "cpu", CPU: cpu}
		names = append(names, w.Name)
		l.create(t, w, nil)
	}
	for _, s := range l.started(t, names...) {
		assert.False(t, s.Outside, "%+v", s)
		switch {
		case s.Warm():
			warm = append(warm, s)
		default:
			assert.True(t, s.Booted, "%+v", s)
			new = append(new, s)
		}
	}
	return warm, new
}

// Nine of ten fit beside the placeholders, three on each node. The tenth fits in the place of none and waits for a node.
func (l *lab) burstBeside(t *testing.T) {
	l.begin(t, "cpu", 3)
	nodes := l.warm(t, "cpu")
	l.counted(t, "cpu", "coexist", "", 9, func() {
		warm, new := l.burst(t, beside)
		assert.Len(t, warm, 9)
		assert.Len(t, new, 1)
		for _, s := range warm {
			assert.Equal(t, simulation.Coexist, s.Path)
			assert.Contains(t, nodes, s.Node)
		}
	})
	l.onlyPlaceholders(t, 0, "")
	assert.Equal(t, nodes, l.warm(t, "cpu"))
}

// Ten that need a node each: the first three take the places of the placeholders, which come back on new nodes.
func (l *lab) burstInPlace(t *testing.T) {
	l.begin(t, "cpu", 3)
	nodes := l.warm(t, "cpu")
	l.counted(t, "cpu", "preempt", "", 3, func() {
		warm, new := l.burst(t, alone)
		assert.Len(t, warm, 3)
		assert.Len(t, new, 7)
		for _, s := range warm {
			assert.Equal(t, simulation.Preempt, s.Path)
			assert.Contains(t, nodes, s.Node)
		}
	})
	l.madeRoom(t, 3, preempted) // more where a placeholder came to a new node before the Workspace that waited for it
	for _, node := range l.refilled(t, "cpu", 3) {
		assert.NotContains(t, nodes, node)
	}
	assert.Len(t, l.nodes(t, "cpu"), 13)
}

// A placeholder that made room is warm on a new node before long, and another Workspace can take its place there.
func (l *lab) refill(t *testing.T) {
	l.begin(t, "cpu", 2)
	known := l.warm(t, "cpu")
	var selector map[string]string
	for i := range 2 {
		l.counted(t, "cpu", "preempt", "", 1, func() {
			s := l.one(t, simulation.Workspace{Name: fmt.Sprintf("refill-%d", i), Kind: "cpu", CPU: alone}, func(spec *corev1.PodSpec) { spec.NodeSelector = selector })
			assert.Equal(t, simulation.Preempt, s.Path)
			assert.True(t, s.Warm(), "%+v", s)
		})
		l.onlyPlaceholders(t, i+1, preempted)
		fresh := slices.DeleteFunc(l.refilled(t, "cpu", 2), func(node string) bool { return slices.Contains(known, node) })
		require.Len(t, fresh, 1)
		known = append(known, fresh...)
		selector = map[string]string{corev1.LabelHostname: l.node(t, fresh[0]).Labels[corev1.LabelHostname]}
	}
	assert.Len(t, l.nodes(t, "cpu"), 4)
}
