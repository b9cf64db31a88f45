package policy

import (
	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
)

// eachTemplate judges the WorkspaceTemplates that pools list, each once, in the order of the configuration. Those that do not
// exist are the placeholders' fault.
func (a *Audit) eachTemplate(judge func(about, *cluster.WorkspaceTemplate)) {
	templates := a.facts.Templates
	seen := map[config.TemplateRef]bool{}
	for _, pool := range a.pools.All() {
		for _, ref := range pool.Config.Templates {
			if len(seen) == 0 {
				a.unread("WorkspaceTemplates", templates)
			}
			if seen[ref] {
				continue
			}
			seen[ref] = true
			key, about := ref.String(), a.about("WorkspaceTemplate", ref.Namespace, ref.Name, pool.Config.Name)
			if template, malformed := templates.Get(key), templates.Malformed(key); template != nil {
				judge(about, template)
			} else if malformed != "" {
				about.notVerified(podSpecPath, "%s", malformed)
			}
			for i, template := range templates.Variants(key) {
				about.Definition = i + 1
				judge(about, template)
			}
		}
	}
}
