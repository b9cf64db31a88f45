package audit

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// guess is a pool in the making: placeholders that hold the same nodes, and what tells these nodes.
type guess struct {
	label        string // warmpool.sh/pool
	nodePools    map[string]bool
	nodeLabel    *config.NodeLabel
	accelerators map[string]bool
	placeholders []*appsv1.Deployment
	autoscaled   bool
}

// guessPools groups the placeholders by the nodes that they ask for, in the order of the first of each group; homeless
// are those that ask for none.
func guessPools(placeholders []*appsv1.Deployment, facts *cluster.Snapshot) (guesses []*guess, homeless []*appsv1.Deployment) {
	each := oneForEach(facts)
	for _, d := range placeholders {
		g := &guess{nodePools: map[string]bool{}, accelerators: map[string]bool{}, placeholders: []*appsv1.Deployment{d}, autoscaled: facts.NodePools.Len() > 0}
		g.label = poolLabel(d)
		for _, name := range nodePoolsOf(d, each) {
			g.nodePools[name] = true
		}
		if len(g.nodePools) == 0 {
			g.nodeLabel = nodeLabelOf(&d.Spec.Template.Spec)
		}
		if len(g.nodePools) == 0 && g.nodeLabel == nil {
			homeless = append(homeless, d)
			continue
		}
		for _, name := range each.Accelerators(&d.Spec.Template.Spec) {
			g.accelerators[name] = true
		}
		guesses = merge(guesses, g)
	}
	return guesses, homeless
}

func poolLabel(d *appsv1.Deployment) string {
	if label, ok := d.Labels[placement.PoolLabel]; ok {
		return label
	}
	return d.Spec.Template.Labels[placement.PoolLabel]
}

// oneForEach makes a pool of each NodePool, to ask which of them would take a placeholder.
func oneForEach(facts *cluster.Snapshot) *placement.Pools {
	cfg := &config.WarmPoolConfiguration{}
	for name := range facts.NodePools.All() {
		cfg.Pools = append(cfg.Pools, config.Pool{Name: name, NodePools: []string{name}})
	}
	config.SetDefaults(cfg)
	return placement.Compile(cfg, facts, placement.Seen{})
}

// nodePoolsOf are the NodePools that the placeholder names: by the label karpenter.sh/nodepool, else by labels that
// their nodes have, such as instance types, else the only one that would take it. Of several that would, those with
// taints that it tolerates are meant. NodePools on which it could not run are not, unless it could run on none.
func nodePoolsOf(d *appsv1.Deployment, each *placement.Pools) []string {
	spec := &d.Spec.Template.Spec
	asked := requirementsOf(spec)
	for _, r := range asked {
		if r.Key == config.NodePoolLabel {
			return runnable(r.Values, spec, each)
		}
	}
	var named, closed, open, tainted []string
	for _, pool := range each.All() {
		if pool.Fit(spec).Conflict || len(pool.NodePools) == 0 {
			continue
		}
		missing, _ := pool.Untolerated(spec.Tolerations)
		isNamed := slices.ContainsFunc(asked, func(r corev1.NodeSelectorRequirement) bool { return names(pool.NodePools[0], r) })
		switch name := pool.Config.Name; {
		case isNamed && len(missing) == 0:
			named = append(named, name)
		case isNamed:
			closed = append(closed, name)
		case len(missing) > 0:
		case len(pool.Taints) > 0:
			tainted = append(tainted, name)
		default:
			open = append(open, name)
		}
	}
	return meant(named, closed, tainted, open)
}

// meant chooses among the NodePools that a placeholder names and tolerates, that it names alone, and that it does not name:
// with taints that it tolerates, or without taints.
func meant(named, closed, tainted, open []string) []string {
	switch {
	case len(named) > 0:
		return named
	case len(closed) > 0:
		return closed
	case len(tainted) == 1:
		return tainted
	case len(tainted) == 0 && len(open) == 1:
		return open
	default:
		return nil
	}
}

// runnable leaves out the known NodePools on which the placeholder could not run, unless no others would be left.
func runnable(names []string, spec *corev1.PodSpec, each *placement.Pools) []string {
	can := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		pool := each.Get(name)
		return pool != nil && pool.Fit(spec).Conflict
	})
	if len(can) == 0 {
		return names
	}
	return can
}

// requirementsOf are the lists of values that the required node selection asks for, by key; not those that say little of
// a pool.
func requirementsOf(spec *corev1.PodSpec) []corev1.NodeSelectorRequirement {
	var asked []corev1.NodeSelectorRequirement
	for _, key := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		asked = append(asked, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{spec.NodeSelector[key]}})
	}
	if required := cluster.RequiredNodes(spec); required != nil {
		for _, term := range required.NodeSelectorTerms {
			asked = append(asked, term.MatchExpressions...)
		}
	}
	return slices.DeleteFunc(asked, func(r corev1.NodeSelectorRequirement) bool {
		return r.Operator != corev1.NodeSelectorOpIn || len(r.Values) == 0 || slices.Contains(common, r.Key)
	})
}

// common are the labels that nodes of most pools share.
var common = []string{
	corev1.LabelOSStable, corev1.LabelArchStable, corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelHostname, "karpenter.sh/capacity-type",
}

// names tells whether the nodes of the NodePool carry a value that is asked for.
func names(np *cluster.NodePool, r corev1.NodeSelectorRequirement) bool {
	if value, ok := np.Labels[r.Key]; ok {
		return slices.Contains(r.Values, value)
	}
	return slices.ContainsFunc(np.Requirements, func(own corev1.NodeSelectorRequirement) bool {
		return own.Key == r.Key && own.Operator == corev1.NodeSelectorOpIn && overlap(own.Values, r.Values)
	})
}

// nodeLabelOf is the node label that the placeholder asks for where no NodePool has it; instance types tell least.
func nodeLabelOf(spec *corev1.PodSpec) *config.NodeLabel {
	var label *config.NodeLabel
	for _, r := range requirementsOf(spec) {
		if label == nil || label.Key == corev1.LabelInstanceTypeStable {
			label = &config.NodeLabel{Key: r.Key, Values: slices.Compact(slices.Sorted(slices.Values(r.Values)))}
		}
	}
	return label
}

// merge adds a guess, joined with those that share its label or nodes: a node belongs to one pool only.
func merge(guesses []*guess, g *guess) []*guess {
	into := g
	var apart []*guess
	for _, other := range guesses {
		if !other.sameAs(into) {
			apart = append(apart, other)
			continue
		}
		other.take(into)
		apart = slices.DeleteFunc(apart, func(x *guess) bool { return x == into })
		apart = append(apart, other)
		into = other
	}
	if into == g {
		apart = append(apart, g)
	}
	return apart
}

func (g *guess) sameAs(o *guess) bool {
	if g.label != "" && g.label == o.label && (g.nodeLabel == nil) == (o.nodeLabel == nil) {
		return g.nodeLabel == nil || g.nodeLabel.Key == o.nodeLabel.Key
	}
	for name := range o.nodePools {
		if g.nodePools[name] {
			return true
		}
	}
	return g.nodeLabel != nil && o.nodeLabel != nil && g.nodeLabel.Key == o.nodeLabel.Key && overlap(g.nodeLabel.Values, o.nodeLabel.Values)
}

func (g *guess) take(o *guess) {
	maps.Copy(g.nodePools, o.nodePools)
	maps.Copy(g.accelerators, o.accelerators)
	g.placeholders = append(g.placeholders, o.placeholders...)
	if g.label == "" {
		g.label = o.label
	}
	if g.nodeLabel != nil && o.nodeLabel != nil {
		g.nodeLabel.Values = slices.Compact(slices.Sorted(slices.Values(slices.Concat(g.nodeLabel.Values, o.nodeLabel.Values))))
	}
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// pool is the guess as configuration, under a name that is not taken.
func (g *guess) pool(taken map[string]bool) config.Pool {
	pool := config.Pool{
		NodePools: slices.Sorted(maps.Keys(g.nodePools)), NodeLabel: g.nodeLabel,
		Accelerators: slices.Sorted(maps.Keys(g.accelerators)), Autoscaler: config.Karpenter,
	}
	if !g.autoscaled {
		pool.Autoscaler = config.NoAutoscaler
	}
	_, values := pool.Label()
	base := values[0]
	if g.label != "" {
		base = g.label
	}
	pool.Name = base
	for i := 2; taken[pool.Name]; i++ {
		pool.Name = fmt.Sprintf("%s-%d", base, i)
	}
	taken[pool.Name] = true
	return pool
}
