package policy

import (
	"fmt"
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

// New makes an Evaluator. now decides which exemptions apply and which certificates are near their end. The error names what is wrong with the configuration;
// a validated one gives none.
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

// Pools are the pools as configured and as the cluster has them.
func (e *Evaluator) Pools() *placement.Pools { return e.pools }

// Config is the configuration in force.
func (e *Evaluator) Config() *config.WarmPoolConfiguration { return e.config }

// Facts is the Snapshot that the Evaluator judges by.
func (e *Evaluator) Facts() *cluster.Snapshot { return e.facts }

// IsWorkspace tells whether labels are those of a Workspace's pod or Deployment.
func (e *Evaluator) IsWorkspace(podLabels map[string]string) bool {
	return e.workspaces.Matches(labels.Set(podLabels))
}

// Mutate fills what is absent, rule by rule, in the Object, and returns the operations that do the same to its JSON. What
// it replaced the Object tells afterwards.
func (e *Evaluator) Mutate(o *Object) placement.Patch {
	var patch placement.Patch
	actions := e.actionsOf(o)
	for _, i := range o.rules {
		rule := table[i]
		if rule.mutate == nil || !e.applies(rule, actions[i], o) {
			continue
		}
		known := len(o.replaced)
		rule.mutate(o, &patch)
		for j := known; j < len(o.replaced); j++ {
			o.replaced[j] = o.replaced[j].of(rule, actions[i])
		}
	}
	return patch
}

// Check returns the findings about the Object in the order of the table.
func (e *Evaluator) Check(o *Object) []Finding {
	return e.check(o, false)
}

// check is Check, with the rules that only audits go by or without.
func (e *Evaluator) check(o *Object, audit bool) []Finding {
	var findings []Finding
	o.judged = judged{}
	actions := e.actionsOf(o)
	for _, i := range o.rules {
		rule := table[i]
		if rule.check == nil || rule.AuditOnly && !audit || !e.applies(rule, actions[i], o) {
			continue
		}
		for _, f := range rule.check(o) {
			findings = append(findings, f.of(rule, actions[i]))
		}
	}
	return findings
}

// CheckUpdate returns the findings about an updated Object. What the old one had already, and no less of, is not
// denied but warned about: old violations must not block labels, finalizers, scaling and step-by-step repair. Neither is
// anything denied of an object that is being deleted.
func (e *Evaluator) CheckUpdate(o, old *Object) []Finding {
	findings := e.Check(o)
	passes, excuse := isLeaving(o), e.excuse(o, old)
	var had map[string]int64
	for i := range findings {
		f := &findings[i]
		if f.Action != config.Deny {
			continue
		}
		if had == nil {
			had = e.amounts(excuse)
		}
		before, same := had[f.identity()]
		excused := f.short != nil && excuse != nil && f.short.before(excuse)
		if passes || same && f.amount <= before || excused {
			f.Action = config.Warn
		}
	}
	return findings
}

// excuse is the old object whose faults the new one may keep; nil: none. What becomes a placeholder, or leaves 0 replicas,
// is judged anew: else faults could come in where they are not in force. At 0 replicas the old one is taken as if it had
// been there too, so that scaling down is no fault.
func (e *Evaluator) excuse(o, old *Object) *Object {
	switch {
	case old.Deployment == nil:
		return old
	case !e.IsPlaceholder(old.Deployment), rests(old) && !rests(o):
		return nil
	case rests(o) && !rests(old):
		scaled := *old.Deployment
		scaled.Spec.Replicas = new(int32)
		return e.Placeholder(&scaled, old.Namespace)
	default:
		return old
	}
}

// rests tells that the object is a Deployment without pods.
func rests(o *Object) bool {
	return o.Deployment != nil && o.Deployment.Spec.Replicas != nil && *o.Deployment.Spec.Replicas == 0
}

// amounts are the violations that the rules held against the object before; nil had none. Findings that are capped do not
// excuse: what held in part may now not hold at all.
func (e *Evaluator) amounts(old *Object) map[string]int64 {
	had := map[string]int64{}
	if old == nil {
		return had
	}
	findings := e.Check(old)
	for i := range findings {
		if findings[i].atMost == "" {
			id := findings[i].identity()
			had[id] = max(had[id], findings[i].amount)
		}
	}
	return had
}

func isLeaving(o *Object) bool {
	if o.Deployment == nil {
		return o.Pod.DeletionTimestamp != nil
	}
	return o.Deployment.DeletionTimestamp != nil
}

func (e *Evaluator) actionsOf(o *Object) []config.Action {
	if o.Pool == nil {
		return e.actions[""]
	}
	return e.actions[o.Pool.Config.Name]
}

func (e *Evaluator) applies(rule *Rule, action config.Action, o *Object) bool {
	return action != config.Off && !e.exempt(rule, o)
}

// exempt looks for an exemption by the object's name; a Workspace pod, whose name is generated, goes by its
// Workspace's name too.
func (e *Evaluator) exempt(rule *Rule, o *Object) bool {
	if o.Pod != nil {
		return e.exempts(rule, o.Namespace, o.Name, o.Pod.Labels[config.WorkspaceLabel])
	}
	return e.exempts(rule, o.Namespace, o.Name)
}

// exempts looks for an exemption of what goes by any of the names.
func (e *Evaluator) exempts(rule *Rule, namespace string, names ...string) bool {
	return slices.ContainsFunc(e.exemptions, func(x config.Exemption) bool {
		return x.Namespace == namespace && slices.Contains(x.Rules, rule.ID) && (x.Name == "" || slices.Contains(names, x.Name))
	})
}
