package config

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// workspaceLabel is on every pod of a Workspace.
const workspaceLabel = "workspace.jupyter.org/workspace-name"

// SetDefaults fills what c leaves out. Doing so twice changes nothing more.
func SetDefaults(c *WarmPoolConfiguration) {
	c.Placeholders.Namespace = cmp.Or(c.Placeholders.Namespace, "overprovisioning")
	c.Placeholders.PriorityClassName = cmp.Or(c.Placeholders.PriorityClassName, "overprovisioning-placeholder")
	if c.Workspaces.Selector == nil {
		c.Workspaces.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: workspaceLabel, Operator: metav1.LabelSelectorOpExists},
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
	}
}
