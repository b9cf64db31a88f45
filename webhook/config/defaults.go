package config

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels that others put on nodes and pods.
const (
	// NodePoolLabel is on every node of a Karpenter NodePool, with the NodePool's name.
	NodePoolLabel = "karpenter.sh/nodepool"
	// WorkspaceLabel is on every pod of a Workspace, with the Workspace's name.
	WorkspaceLabel = "workspace.jupyter.org/workspace-name"
)

// SetDefaults fills what c leaves out. Doing so twice changes nothing more.
func SetDefaults(c *WarmPoolConfiguration) {
	c.Placeholders.Namespace = cmp.Or(c.Placeholders.Namespace, "overprovisioning")
	c.Placeholders.PriorityClassName = cmp.Or(c.Placeholders.PriorityClassName, "overprovisioning-placeholder")
	if c.Workspaces.Selector == nil {
		c.Workspaces.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: WorkspaceLabel, Operator: metav1.LabelSelectorOpExists},
		}}
	}
	c.Workspaces.OnConflict = cmp.Or(c.Workspaces.OnConflict, Warn)
	if c.AuditInterval == nil {
		c.AuditInterval = &metav1.Duration{Duration: 10 * time.Minute}
	}
	for i := range c.Pools {
		p := &c.Pools[i]
		p.PrePull = cmp.Or(p.PrePull, PrePullDefault)
		p.Autoscaler = cmp.Or(p.Autoscaler, Karpenter)
		p.Sizing.Mode = cmp.Or(p.Sizing.Mode, Coexist)
		if p.WarmFirst == nil {
			p.WarmFirst = new(true)
		}
		if p.Size != nil {
			setSizeDefaults(p.Size)
		}
	}
}

func setSizeDefaults(s *Size) {
	s.Mode = cmp.Or(s.Mode, Recommend)
	if s.Cost == nil {
		s.Objective = cmp.Or(s.Objective, 0.95)
	}
	if s.Min == nil {
		s.Min = new(int32(1))
	}
	s.TimeZone = cmp.Or(s.TimeZone, "UTC")
}
