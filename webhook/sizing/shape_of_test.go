package sizing_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestShapeOf(t *testing.T) {
	small := node("small", "cpu", "m", "cpu=4")
	plain := node("plain", "cpu", "l", "cpu=8")
	special := node("special", "cpu", "l", "cpu=8", labelled("special", "yes"))
	guarded := node("guarded", "cpu", "l", "cpu=8", tainted("guard:NoSchedule"))
	objects := []any{
		small, plain, special, guarded,
		daemonSet("s/everywhere", "cpu=1", everywhere),
		daemonSet("s/unguarded", "cpu=1"),
		daemonSet("s/special", "cpu=1", onNodes(labelsTerm("special", corev1.NodeSelectorOpExists))),
	}
	sizes := sizesOf(objects...)
	require.Len(t, sizes.Shapes, 4)
	for n, want := range map[*corev1.Node][]string{
		small: {"s/everywhere", "s/unguarded"}, plain: {"s/everywhere", "s/unguarded"},
		special: {"s/everywhere", "s/special", "s/unguarded"}, guarded: {"s/everywhere"},
	} {
		shape := sizes.ShapeOf(n)
		require.NotNil(t, shape, n.Name)
		assert.Equal(t, want, names(shape.Daemons), n.Name)
		assert.Equal(t, n.Labels[corev1.LabelInstanceTypeStable], shape.InstanceType)
	}
	assert.Nil(t, sizes.ShapeOf(node("away", "cpu", "l", "cpu=8", notReady)), "its numbers are not gone by")
	assert.Nil(t, sizes.ShapeOf(node("other", "cpu", "xl", "cpu=8")))
}
