package policy

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/prepull"
	"warmpool.sh/webhook/sizing"
)

// Evaluator judges and fills objects by one configuration and one Snapshot. It is immutable: a change of either
// makes a new one, off the request path.
type Evaluator struct {
	config     *config.WarmPoolConfiguration
	facts      *cluster.Snapshot
	pools      *placement.Pools
	sizes      *sizing.Sizes
	workspaces labels.Selector
	exemptions []config.Exemption
	now        time.Time
	// sources of the images to pre-pull, by pool name; empty while the templates are not known.
	sources map[string][]prepull.Source
	// pulled are the images that placeholders pre-pull, by pool name.
	pulled map[string][]string
	// warmTerms are what Workspace pods are to prefer, by pool name and image.
	warmTerms map[string]map[string]*corev1.WeightedPodAffinityTerm
	// actions by pool name (empty: no pool), in the order of the table.
	actions map[string][]config.Action
}

// New makes an Evaluator. now decides which exemptions apply and which certificates are near their end. The error says what
// is wrong with the configuration; a validated one gives none.
func New(cfg *config.WarmPoolConfiguration, facts *cluster.Snapshot, now time.Time) (*Evaluator, error) {
	return NewWithSizes(cfg, facts, sizing.NewTracker(cfg).Update(facts), now)
}

// NewWithSizes is New for a caller that keeps the sizes up to date by a sizing.Tracker.
func NewWithSizes(cfg *config.WarmPoolConfiguration, facts *cluster.Snapshot, sizes *sizing.Sizes, now time.Time) (*Evaluator, error) {
	selector, err := metav1.LabelSelectorAsSelector(cfg.Workspaces.Selector)
	if err != nil {
		return nil, fmt.Errorf("workspaces.selector: %w", err)
	}
	e := &Evaluator{
		config: cfg, facts: facts, sizes: sizes, workspaces: selector, now: now,
		pools: placement.Compile(cfg, facts, placement.Seen{
			Taints:     func(pool string) []corev1.Taint { return sizes.Pool(pool).Taints },
			Labels:     func(pool string) map[string]cluster.NodeLabels { return sizes.Pool(pool).Labels },
			ByHostname: sizes.ByHostname,
		}),
		actions: make(map[string][]config.Action, len(cfg.Pools)+1),
		sources: make(map[string][]prepull.Source, len(cfg.Pools)),

		warmTerms: make(map[string]map[string]*corev1.WeightedPodAffinityTerm, len(cfg.Pools)),
	}
	for _, exemption := range cfg.Exemptions {
		if exemption.ActiveAt(now) {
			e.exemptions = append(e.exemptions, exemption)
		}
	}
	e.actions[""] = e.actionsFor(nil)
	for i := range cfg.Pools {
		pool := &cfg.Pools[i]
		e.actions[pool.Name] = e.actionsFor(pool.Rules)
		if facts.Templates.Known() {
			e.sources[pool.Name] = prepull.Sources(pool, &cfg.Workspaces, facts.Templates)
			e.warmTerms[pool.Name] = warmTerms(cfg.Placeholders.Namespace, pool, e.sources[pool.Name])
		}
	}
	e.pulled = e.pulledImages()
	return e, nil
}

// actionsFor gives each rule's action: the pool's, else the configuration's, else the rule's own.
func (e *Evaluator) actionsFor(poolRules map[string]config.Action) []config.Action {
	actions := make([]config.Action, len(table))
	for i, rule := range table {
		actions[i] = rule.Action
		if rule == workspacePoolConflict && e.config.Workspaces.OnConflict != "" {
			actions[i] = e.config.Workspaces.OnConflict
		}
		for _, configured := range []map[string]config.Action{e.config.Rules, poolRules} {
			if action, ok := configured[rule.ID]; ok {
				actions[i] = action
			}
		}
	}
	return actions
}

// pulledImages are the images that the placeholders of each pool bring to their nodes, sorted, by the pool's name; pools
// without a placeholder are not there.
func (e *Evaluator) pulledImages() map[string][]string {
	pulled := map[string][]string{}
	for _, d := range e.facts.Deployments.All() {
		if !e.IsPlaceholder(d) {
			continue
		}
		if pool := e.pools.ForPlaceholder(d).Pool; pool != nil {
			pulled[pool.Config.Name] = append(pulled[pool.Config.Name], prepull.Present(&d.Spec.Template.Spec)...)
		}
	}
	for pool, images := range pulled {
		slices.Sort(images)
		pulled[pool] = slices.Compact(images)
	}
	return pulled
}

// Pools are the pools as configured and as the cluster has them.
func (e *Evaluator) Pools() *placement.Pools { return e.pools }

// Config is the configuration in force.
func (e *Evaluator) Config() *config.WarmPoolConfiguration { return e.config }

// Facts is the Snapshot that the Evaluator judges by.
func (e *Evaluator) Facts() *cluster.Snapshot { return e.facts }

// Sizes are what the nodes of the pools have room for.
func (e *Evaluator) Sizes() *sizing.Sizes { return e.sizes }

// Sources are the images that a pool's templates ask for; none while the templates are not known.
func (e *Evaluator) Sources(pool string) []prepull.Source { return e.sources[pool] }

// IsWorkspace tells whether labels are those of a Workspace's pod or Deployment.
func (e *Evaluator) IsWorkspace(podLabels map[string]string) bool {
	return e.workspaces.Matches(labels.Set(podLabels))
}

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
