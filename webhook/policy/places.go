package policy

import (
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/sizing"
)

// Places is how many default Workspaces of the pool's templates a warm node takes, at least 1.
func (e *Evaluator) Places(pool *placement.Pool) int {
	if pool.Config.Sizing.Mode == config.Exclusive {
		return 1
	}
	var templates []sizing.Template
	for _, ref := range pool.Config.Templates {
		if template := e.facts.Templates.Get(ref.String()); template != nil {
			templates = append(templates, sizing.TemplateOf(template))
		}
	}
	return sizing.Places(e.sizes.Pool(pool.Config.Name).Shapes, templates)
}
