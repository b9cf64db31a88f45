package policy

import (
	"maps"
	"slices"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Filling is what Mutate goes by for the Workspace pods of a pool, beside the pool itself: for those who do the same
// by other means.
type Filling struct {
	// Rules are the ids of the rules that fill something in and are not off, in the order of the table.
	Rules []string
	// Images are those for which a pod prefers nodes that have them, sorted.
	Images []string
}

// Filling of a pool's Workspace pods.
func (e *Evaluator) Filling(pool *placement.Pool) Filling {
	var filling Filling
	actions := e.actions[pool.Config.Name]
	for i, rule := range table {
		if rule.Subject == WorkspacePod && rule.mutate != nil && actions[i] != config.Off {
			filling.Rules = append(filling.Rules, rule.ID)
		}
	}
	filling.Images = slices.Sorted(maps.Keys(e.warmTerms[pool.Config.Name]))
	return filling
}

// Exemptions are those that apply, in the order of the configuration.
func (e *Evaluator) Exemptions() []config.Exemption { return slices.Clone(e.exemptions) }

// Denying are the rules of placeholders that deny in every pool, and without one, in the order of the table.
func (e *Evaluator) Denying() []*Rule {
	var rules []*Rule
	for i, rule := range table {
		denies := rule.Subject == PlaceholderDeployment && !rule.AuditOnly
		for _, actions := range e.actions {
			denies = denies && actions[i] == config.Deny
		}
		if denies {
			rules = append(rules, rule)
		}
	}
	return rules
}
