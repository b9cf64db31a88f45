package policy

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

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
	around:   emptyBesideWarm,
	mutate: func(o *Object, patch *placement.Patch) {
		if term := o.warmFirst(); term != nil && !isBound(o) && !o.Pool.Fit(o.Spec).Conflict {
			placement.Prefer(o.Spec, o.specPointer(), term, patch)
		}
	},
}

func checkWarmFirst(o *Object) []Finding {
	path := func() *field.Path {
		return o.specPath("affinity", "podAffinity", "preferredDuringSchedulingIgnoredDuringExecution")
	}
	if o.Pool != nil && prefersWarm(o.Pool.Config) && len(o.Pool.Config.Templates) > 0 && !o.facts.Templates.Known() {
		return []Finding{notVerified(path(), "WorkspaceTemplates: "+o.facts.Templates.Reason()).atMostAudit()}
	}
	if o.warmFirst() == nil || o.fit().Conflict {
		return nil
	}
	image := o.Spec.Containers[workspaceContainer(o.Spec)].Image
	return []Finding{required(path(), fmt.Sprintf("of the nodes with room in pool %s the pod takes the emptiest, not one that has %s", o.PoolName(), clip(image)))}
}

// warmFirst is the term that a Workspace pod lacks; nil where it has a preference of its own, and where warmpool knows
// none. Of several containers the image of the one that the user works in decides: only that one is pre-pulled.
func (o *Object) warmFirst() *corev1.WeightedPodAffinityTerm {
	i := workspaceContainer(o.Spec)
	if o.Pool == nil || i < 0 {
		return nil
	}
	term := o.warmTerms[o.Pool.Config.Name][o.Spec.Containers[i].Image]
	if term == nil || placement.MindsPlaceholders(o.Spec, o.config.Placeholders.Namespace) {
		return nil
	}
	return term
}

// prefersWarm tells whether Workspace pods of the pool are to prefer warm nodes.
func prefersWarm(pool *config.Pool) bool {
	return pool.Sizing.Mode != config.Exclusive && (pool.WarmFirst == nil || *pool.WarmFirst)
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
