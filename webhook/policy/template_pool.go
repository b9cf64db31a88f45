package policy

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/prepull"
)

// Applies to: all WorkspaceTemplates.
// Requires: a pool that pre-pulls the default image.
// Why: Workspaces of a template that no pool lists pull their image first, on warm nodes too.
var templatePool = &Rule{
	ID:       "template-pool",
	Summary:  "Some pool pre-pulls its default image; else its Workspaces wait for the pull, even on warm nodes.",
	Fix:      "List the template in the templates of the pool that its Workspaces go to.",
	Subject:  WorkspaceTemplate,
	Severity: SeverityInfo,
	audit:    auditTemplatePool,
}

func auditTemplatePool(a *Audit) {
	templates := a.facts.Templates
	a.unread("WorkspaceTemplates", templates)
	pulled, listed := map[string]bool{}, map[string]bool{}
	unknown := ""
	for _, pool := range a.pools.All() {
		for _, s := range prepull.Sources(pool.Config, &a.config.Workspaces, templates) {
			key := s.Template.String()
			listed[key] = true
			if s.Image != "" {
				pulled[s.Image] = true
			} else if templates.Get(key) == nil {
				unknown = cmp.Or(unknown, templates.Absent("WorkspaceTemplates", "WorkspaceTemplate "+key, key))
			}
		}
	}
	path := field.NewPath("spec", "defaultImage")
	for key, template := range templates.All() {
		image := prepull.Resolve(template.DefaultImage, &a.config.Workspaces).Image
		about := a.about("WorkspaceTemplate", template.Namespace, template.Name, "")
		switch {
		case listed[key] || pulled[image]:
		case unknown != "":
			about.notVerified(path, "no pool lists the template; whether another one's image is the same is not known: %s", unknown)
		default:
			about.invalid(path, template.DefaultImage, "no pool lists the template, and no other template's image is the same: it is pulled when a Workspace starts")
		}
	}
	for _, key := range templates.AllMalformed() {
		if namespace, name, _ := strings.Cut(key, "/"); !listed[key] {
			a.about("WorkspaceTemplate", namespace, name, "").notVerified(path, "%s", templates.Malformed(key))
		}
	}
}
