package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Applies to: WorkspaceTemplates that pools list.
// Requires: defaults (node selector, affinity, resources, labels) with which a Workspace goes to such a pool.
// Why: what a template sets counts as the user's own choice, so every Workspace of it starts cold.
var templatePoolConflict = &Rule{
	ID:       "template-pool-conflict",
	Summary:  "Its defaults lead its Workspaces to a pool that lists it: default node selector and affinity do not exclude the pool, and the default resources are those that the pool offers.",
	Fix:      "Remove what excludes the pool from the template, or list the template in the pool that it is made for.",
	Subject:  WorkspaceTemplate,
	Severity: SeverityWarning,
	audit:    auditTemplatePoolConflict,
}

func auditTemplatePoolConflict(a *Audit) {
	listing := map[config.TemplateRef][]string{}
	var refs []config.TemplateRef
	for _, pool := range a.pools.All() {
		for _, ref := range pool.Config.Templates {
			if len(listing[ref]) == 0 {
				refs = append(refs, ref)
			}
			listing[ref] = append(listing[ref], pool.Config.Name)
		}
	}
	for _, ref := range refs {
		if template := a.facts.Templates.Get(ref.String()); template != nil {
			judgeTemplate(a, a.about("WorkspaceTemplate", ref.Namespace, ref.Name, listing[ref][0]), template, listing[ref])
		}
	}
}

// judgeTemplate places a Workspace that takes all of the template's defaults; listing are the pools that list it.
func judgeTemplate(a *Audit, about about, template *cluster.WorkspaceTemplate, listing []string) {
	path := field.NewPath("spec")
	if template.PlacementProblem != "" {
		about.notVerified(path, "%s", template.PlacementProblem)
		return
	}
	spec := &corev1.PodSpec{
		NodeSelector: template.NodeSelector, Affinity: template.Affinity,
		Containers: []corev1.Container{{Name: "workspace", Resources: template.DefaultResources}},
	}
	choice := a.pools.ForPod(placement.TemplateLabels(template.Labels, template.Namespace, template.Name), spec)
	if choice.Pool == nil || !slices.Contains(listing, choice.Pool.Config.Name) {
		ledElsewhere(about, template, choice, listing)
		return
	}
	if choice.Problem != "" {
		about.invalid(path.Child("baseLabels"), clip(template.Labels[placement.PoolLabel]), "%s", choice.Problem)
	}
	fit := choice.Pool.Fit(spec)
	for _, x := range fit.Excluded {
		asks, what := "{}", "an empty term matches no node at all"
		if x.Key != "" {
			asks, _ = requirementsOn(spec, x)
			what = fmt.Sprintf("%s excludes pool %s, which lists the template", asks, choice.Pool.Config.Name)
		}
		part := path.Child("default" + strings.ToUpper(x.Field()[:1]) + x.Field()[1:])
		if fit.Conflict {
			about.invalid(part, asks, "%s: its Workspaces start on cold nodes", what)
		} else {
			about.invalid(part, asks, "%s: its Workspaces may start on cold nodes", what).milder(SeverityInfo)
		}
	}
}

// ledElsewhere is about a template whose label or resources lead to no pool that lists it.
func ledElsewhere(about about, template *cluster.WorkspaceTemplate, choice placement.Choice, listing []string) {
	where := "to no pool"
	if choice.Pool != nil {
		where = "to pool " + choice.Pool.Config.Name
	}
	path, value := field.NewPath("spec", "defaultResources"), cmp.Or(clipped(choice.Accelerators), "no accelerator")
	if label, ok := template.Labels[placement.PoolLabel]; ok && choice.Problem == "" {
		path, value = field.NewPath("spec", "baseLabels"), placement.PoolLabel+"="+clip(label)
	}
	about.invalid(path, value, "its Workspaces go %s, and not to %s, which lists the template", where, strings.Join(listing, ", "))
}
