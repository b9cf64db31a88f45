package policy

import (
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
	ID:        "template-pool-conflict",
	Summary:   "Its defaults lead its Workspaces to a pool that lists it: default node selector and affinity do not exclude the pool, and the default resources are those that the pool offers.",
	Fix:       "Remove what excludes the pool from the template, or list the template in the pool that it is made for.",
	Subject:   WorkspaceTemplate,
	Action:    config.Audit,
	Severity:  SeverityWarning,
	AuditOnly: true,
	around:    checkTemplatePoolConflict,
}

func checkTemplatePoolConflict(a *Audit) []Finding {
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
	var findings []Finding
	for _, ref := range refs {
		if template := a.facts.Templates.Get(ref.String()); template != nil {
			for _, f := range a.templateConflicts(template, listing[ref]) {
				findings = append(findings, f.about("WorkspaceTemplate", ref.Namespace, ref.Name, listing[ref][0]))
			}
		}
	}
	return findings
}

// templateConflicts places a Workspace that takes all of the template's defaults; listing are the pools that list it.
func (a *Audit) templateConflicts(template *cluster.WorkspaceTemplate, listing []string) []Finding {
	path := field.NewPath("spec")
	if template.PlacementProblem != "" {
		return []Finding{notVerified(path, template.PlacementProblem)}
	}
	spec := &corev1.PodSpec{
		NodeSelector: template.NodeSelector, Affinity: template.Affinity,
		Containers: []corev1.Container{{Name: "workspace", Resources: template.DefaultResources}},
	}
	choice := a.pools.ForPod(placement.TemplateLabels(template.Labels, template.Namespace, template.Name), spec)
	if choice.Pool == nil || !slices.Contains(listing, choice.Pool.Config.Name) {
		return []Finding{ledElsewhere(template, choice, listing)}
	}
	var findings []Finding
	if choice.Problem != "" {
		findings = append(findings, invalid(path.Child("baseLabels"), clip(template.Labels[placement.PoolLabel]), choice.Problem))
	}
	fit := choice.Pool.Fit(spec)
	for _, x := range fit.Excluded {
		part := "default" + strings.ToUpper(x.Field()[:1]) + x.Field()[1:]
		text, what := "{}", "an empty term matches no node at all"
		if x.Key != "" {
			text, _ = requirementsOn(spec, x)
			what = fmt.Sprintf("%s excludes pool %s, which lists the template", text, choice.Pool.Config.Name)
		}
		f := invalid(path.Child(part), text, what+": its Workspaces start on cold nodes")
		if !fit.Conflict {
			f = invalid(path.Child(part), text, what+": its Workspaces may start on cold nodes").milder(SeverityInfo)
		}
		findings = append(findings, f)
	}
	return findings
}

// ledElsewhere is the finding about a template whose label or resources lead to no pool that lists it.
func ledElsewhere(template *cluster.WorkspaceTemplate, choice placement.Choice, listing []string) Finding {
	where := "to no pool"
	if choice.Pool != nil {
		where = "to pool " + choice.Pool.Config.Name
	}
	lists := fmt.Sprintf("its Workspaces go %s, and not to %s, which lists the template", where, strings.Join(listing, ", "))
	if label, ok := template.Labels[placement.PoolLabel]; ok && choice.Problem == "" {
		return invalid(field.NewPath("spec", "baseLabels"), placement.PoolLabel+"="+clip(label), lists)
	}
	asked := "no accelerator"
	if len(choice.Accelerators) > 0 {
		asked = clip(strings.Join(choice.Accelerators, ", "))
	}
	return invalid(field.NewPath("spec", "defaultResources"), asked, lists)
}
