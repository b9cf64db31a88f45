package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/sizing"
)

// Infer makes a configuration for a cluster that has none: a pool for each set of nodes that placeholders hold, told by
// the label warmpool.sh/pool, else by the NodePools, instance types or other node labels that their node selection
// names. The notes say what was inferred. Without placeholders the configuration has no pools.
func Infer(facts *cluster.Snapshot) (cfg *config.WarmPoolConfiguration, notes []string) {
	cfg = &config.WarmPoolConfiguration{}
	placeholders := placeholdersIn(facts)
	cfg.Placeholders.Namespace = mostUsed(placeholders, func(d *appsv1.Deployment) string { return d.Namespace })
	cfg.Placeholders.PriorityClassName = mostUsed(placeholders, func(d *appsv1.Deployment) string { return d.Spec.Template.Spec.PriorityClassName })
	cfg.Rules = map[string]config.Action{"placeholder-elsewhere": config.Off} // nothing says where they are to be
	config.SetDefaults(cfg)

	guesses, homeless := guessPools(placeholders, facts)
	names := map[string]bool{}
	for _, g := range guesses {
		cfg.Pools = append(cfg.Pools, g.pool(names))
	}
	config.SetDefaults(cfg)
	pools := placement.Compile(cfg, facts, placement.Seen{})
	sizes := sizing.NewTracker(cfg).Update(facts)
	for i, g := range guesses {
		pool := &cfg.Pools[i]
		pool.Templates = templatesOf(pool, g, cfg, pools, facts)
		pool.Sizing.Mode = modeOf(sizes.Pool(pool.Name), g, facts)
		notes = append(notes, describe(pool, g))
	}
	for _, d := range homeless {
		notes = append(notes, fmt.Sprintf("no pool for Deployment %s/%s: it names no NodePool, instance type or other node label", d.Namespace, d.Name))
	}
	if len(cfg.Pools) == 0 {
		return cfg, notes
	}
	return cfg, slices.Concat([]string{"no configuration was found, so pools were inferred from placeholders and NodePools; give --config FILE to say what you mean"}, notes)
}

// placeholdersIn are the Deployments that look like placeholders, in the order of their names.
func placeholdersIn(facts *cluster.Snapshot) []*appsv1.Deployment {
	var found []*appsv1.Deployment
	standard := config.WarmPoolConfiguration{}
	config.SetDefaults(&standard)
	for _, d := range facts.Deployments.Defined() {
		_, isWorkspace := d.Spec.Template.Labels[config.WorkspaceLabel]
		if !isWorkspace && (policy.LooksLikePlaceholder(d, standard.Placeholders.PriorityClassName) || policy.HoldsRoom(&d.Spec.Template.Spec, facts.PriorityClasses)) {
			found = append(found, d)
		}
	}
	return found
}

// mostUsed is the value that most placeholders have, the first by name of several; empty where none has any.
func mostUsed(placeholders []*appsv1.Deployment, value func(*appsv1.Deployment) string) string {
	counts := map[string]int{}
	for _, d := range placeholders {
		counts[value(d)]++
	}
	delete(counts, "")
	names := slices.Sorted(maps.Keys(counts))
	if len(names) == 0 {
		return ""
	}
	return slices.MaxFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(counts[a], counts[b]), cmp.Compare(b, a)) })
}

func describe(pool *config.Pool, g *guess) string {
	key, values := pool.Label()
	nodes := fmt.Sprintf("nodes with %s %s", key, strings.Join(values, ", "))
	if len(pool.NodePools) > 0 {
		nodes = "NodePools " + strings.Join(pool.NodePools, ", ")
	}
	parts := []string{nodes}
	if len(pool.Accelerators) > 0 {
		parts = append(parts, strings.Join(pool.Accelerators, ", "))
	}
	var held []string
	for _, d := range g.placeholders {
		held = append(held, d.Namespace+"/"+d.Name)
	}
	parts = append(parts, "placeholders "+strings.Join(held, ", "))
	for _, t := range pool.Templates {
		parts = append(parts, "template "+t.String())
	}
	return fmt.Sprintf("pool %s (inferred, sizing mode %s): %s", pool.Name, pool.Sizing.Mode, strings.Join(parts, "; "))
}
