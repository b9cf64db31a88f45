package policy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/prepull"
)

// Applies to: Workspace pods of Coexist pools, whose image is one of the pool's templates; off for a pool by warmFirst: false.
// Requires: preferred pod affinity to the placeholders that have pulled the image.
// Why: of two nodes with room the scheduler takes the emptier one, which is the cold one. In Exclusive pools nothing fits
// beside a placeholder, and preemption does not ask what a pod prefers.
var workspaceWarmFirst = &Rule{
	ID:       "workspace-warm-first",
	Summary:  "In a Coexist pool, prefers the nodes where a placeholder has pulled its image.",
	Fix:      "Let the webhook place the pod: delete it, and its controller makes a new one.",
	Subject:  WorkspacePod,
	Fills:    "preferred pod affinity, in Coexist pools",
	Action:   config.Audit,
	Severity: SeverityInfo,
	check:    checkWarmFirst,
	audit:    auditEmptyBesideWarm,
	mutate: func(o *Object, patch *placement.Patch) {
		if term := o.warmFirst(); term != nil && !isBound(o) && !o.Pool.Fit(o.Spec).Conflict {
			placement.Prefer(o.Spec, o.specPointer(), term, patch)
		}
	},
}

func checkWarmFirst(o *Object) {
	path := func() *field.Path {
		return o.specPath("affinity", "podAffinity", "preferredDuringSchedulingIgnoredDuringExecution")
	}
	templates := o.e.facts.Templates
	switch {
	case o.Pool != nil && prefersWarm(o.Pool.Config) && len(o.Pool.Config.Templates) > 0 && !templates.Known():
		o.notVerified(path(), "WorkspaceTemplates: %s", templates.Reason()).atMostAudit()
	case o.warmFirst() != nil && !o.fit().Conflict:
		o.required(path(), "of the nodes with room in pool %s the pod takes the emptiest, not one that has %s", o.pool, clip(WorkspaceContainer(o.Spec).Image))
	}
}

// warmFirst is the term that a Workspace pod lacks; nil where it has a preference of its own, and where warmpool knows
// none. Of several containers the image of the one that the user works in decides: only that one is pre-pulled.
func (o *Object) warmFirst() *corev1.WeightedPodAffinityTerm {
	i := workspaceContainer(o.Spec)
	if o.Pool == nil || i < 0 {
		return nil
	}
	term := o.e.warmTerms[o.pool][o.Spec.Containers[i].Image]
	if term == nil || placement.MindsPlaceholders(o.Spec, o.e.config.Placeholders.Namespace) {
		return nil
	}
	return term
}

// prefersWarm tells whether Workspace pods of the pool are to prefer warm nodes.
func prefersWarm(pool *config.Pool) bool {
	return pool.Sizing.Mode != config.Exclusive && ptr.Deref(pool.WarmFirst, true)
}

// warmTerms are the terms of a pool by the image.
func warmTerms(namespace string, pool *config.Pool, sources []prepull.Source) map[string]*corev1.WeightedPodAffinityTerm {
	if !prefersWarm(pool) {
		return nil
	}
	terms := make(map[string]*corev1.WeightedPodAffinityTerm, len(sources))
	for _, s := range sources {
		if s.Image != "" {
			terms[s.Image] = placement.WarmFirst(namespace, s.Image)
		}
	}
	return terms
}

// auditEmptyBesideWarm finds the nodes that no preference keeps a Workspace from: it has to preempt no one there, and the
// scheduler preempts only where a pod fits on no node.
func auditEmptyBesideWarm(a *Audit) {
	if !a.facts.Pods.Known() {
		return // warm-count says so
	}
	taken := map[string]bool{}
	for _, o := range a.Workspaces {
		taken[o.Spec.NodeName] = true
	}
	warmOn := map[string][]string{} // by pool
	for _, o := range a.Placeholders {
		for _, pod := range a.Pods(o) {
			taken[pod.Spec.NodeName] = true
			if IsWarm(pod) {
				warmOn[o.pool] = append(warmOn[o.pool], pod.Spec.NodeName)
			}
		}
	}
	for _, pool := range a.pools.All() {
		warm := warmOn[pool.Config.Name]
		slices.Sort(warm)
		warm = slices.Compact(warm)
		for _, node := range a.Nodes(pool) {
			if len(warm) > 0 && !taken[node.Name] && a.awaitsPods(node) {
				a.about("Node", "", node.Name, pool.Config.Name).invalid(field.NewPath("metadata", "name"), node.Name,
					"holds neither placeholder nor Workspace, and %d of the pool's nodes are warm (%s): a Workspace that has no room beside a placeholder takes this one first, and starts cold",
					len(warm), clipped(warm)).
					withFix("Raise replicas of the placeholders, or CPA's min, to one for each node, or let the node go: consolidationPolicy WhenEmpty does that.")
			}
		}
	}
}

// awaitsPods tells that a node is ready, that nothing drains it, and that it is not so new that it may still get its
// placeholder.
func (a *Audit) awaitsPods(node *corev1.Node) bool {
	return cluster.Readiness(node) == corev1.ConditionTrue && node.DeletionTimestamp == nil && !node.Spec.Unschedulable &&
		a.now.Sub(node.CreationTimestamp.Time) >= patience
}
