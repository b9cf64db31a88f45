package policy

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/prepull"
)

// Applies to: all WorkspaceTemplates.
// Requires: a pool that pre-pulls the default image.
// Why: Workspaces of a template that no pool lists pull their image first, on warm nodes too.
var templatePool = &Rule{
	ID:        "template-pool",
	Summary:   "Some pool pre-pulls its default image; else its Workspaces wait for the pull, even on warm nodes.",
	Fix:       "List the template in the templates of the pool that its Workspaces go to.",
	Subject:   WorkspaceTemplate,
	Action:    config.Audit,
	Severity:  SeverityInfo,
	AuditOnly: true,
	around:    checkTemplatePool,
}

func checkTemplatePool(a *Audit) []Finding {
	findings := unread("WorkspaceTemplates", a.facts.Templates)
	pulled, listed := map[string]bool{}, map[config.TemplateRef]bool{}
	unknown := ""
	for _, pool := range a.pools.All() {
		for _, s := range prepull.Sources(pool.Config, &a.config.Workspaces, a.facts.Templates) {
			listed[s.Template] = true
			if s.Image != "" {
				pulled[s.Image] = true
			} else if key := s.Template.String(); a.facts.Templates.Get(key) == nil {
				unknown = cmp.Or(unknown, absent("WorkspaceTemplate "+key, key, a.facts.Templates))
			}
		}
	}
	path := field.NewPath("spec", "defaultImage")
	for _, template := range a.facts.Templates.All() {
		image := prepull.Resolve(template.DefaultImage, &a.config.Workspaces).Image
		if !listed[config.TemplateRef{Namespace: template.Namespace, Name: template.Name}] && !pulled[image] {
			f := invalid(path, template.DefaultImage, "no pool lists the template, and no other template's image is the same: it is pulled when a Workspace starts")
			if unknown != "" {
				f = notVerified(path, "no pool lists the template; whether another one's image is the same is not known: "+unknown)
			}
			findings = append(findings, f.about("WorkspaceTemplate", template.Namespace, template.Name, ""))
		}
	}
	for _, key := range a.facts.Templates.AllMalformed() {
		namespace, name, _ := strings.Cut(key, "/")
		if !listed[config.TemplateRef{Namespace: namespace, Name: name}] {
			f := notVerified(path, a.facts.Templates.Malformed(key))
			findings = append(findings, f.about("WorkspaceTemplate", namespace, name, ""))
		}
	}
	return findings
}
