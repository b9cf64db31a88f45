package sizing

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
)

// ShapeOf is the shape that a node of the pool is counted in; nil: its numbers are not gone by. Of the shapes of one
// instance type that is the one with most DaemonSets that run on the node: those of the others miss some, or do not run.
func (p *PoolSizes) ShapeOf(node *corev1.Node) *Shape {
	if !counts(node) {
		return nil
	}
	taints := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(taint corev1.Taint) bool {
		return taint.Effect == corev1.TaintEffectPreferNoSchedule || cluster.IsLifecycleTaint(taint.Key)
	})
	joined := settled(node)
	var found *Shape
	for _, shape := range p.Shapes {
		if shape.Source != FromNodes || shape.InstanceType != node.Labels[corev1.LabelInstanceTypeStable] {
			continue
		}
		missing := slices.ContainsFunc(shape.Daemons, func(d *Daemon) bool { return !d.runsOn(joined, taints) })
		if !missing && (found == nil || len(shape.Daemons) > len(found.Daemons)) {
			found = shape
		}
	}
	return found
}
