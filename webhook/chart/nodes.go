package chart

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/sizing"
)

// groupLabels are the labels that tell groups of nodes where there is no Karpenter, the first that nodes have.
var groupLabels = []string{
	"sagemaker.amazonaws.com/instance-group-name", "eks.amazonaws.com/nodegroup", "cloud.google.com/gke-nodepool",
	"kubernetes.azure.com/agentpool", corev1.LabelInstanceTypeStable,
}

// candidate is a pool that may be.
type candidate struct {
	pool config.Pool
	// nodes are the names of its nodes; accelerated tells how many of them have accelerators.
	nodes       []string
	accelerated int
	templates   []*cluster.WorkspaceTemplate
	remarks     []string
}

// addPools adds what placeholders do not hold already: a pool for each NodePool, or group of nodes, in which Workspaces of
// some template are to run.
func (p *Proposal) addPools(facts *cluster.Snapshot) {
	cfg := &p.Values.WarmPoolConfiguration
	for i := range cfg.Pools {
		p.remark(fmt.Sprintf("pools[%d]", i), "of the placeholders that are there already")
	}
	var open []*candidate
	for _, c := range candidates(facts) {
		if !slices.ContainsFunc(cfg.Pools, func(pool config.Pool) bool { return claims(&pool, &c.pool) }) {
			open = append(open, c)
		}
	}
	p.assign(open, facts)
	for _, c := range open {
		if len(c.templates) == 0 && facts.Templates.Len() > 0 {
			p.say("Left out: %s. No template's Workspaces run there as far as can be told.", nodesOf(&c.pool))
			continue
		}
		for _, t := range c.templates {
			c.pool.Templates = append(c.pool.Templates, config.TemplateRef{Namespace: t.Namespace, Name: t.Name})
		}
		if len(c.templates) == 0 {
			c.remarks = append(c.remarks, Decide+"is this pool for Workspaces? Nothing tells; take it out if not")
		}
		if c.accelerated > 0 && c.accelerated < len(c.nodes) {
			c.remarks = append(c.remarks, fmt.Sprintf("%smixed hardware: %d of %d nodes have %s. Placeholders keep only those warm; a NodePool of their own is better",
				Decide, c.accelerated, len(c.nodes), strings.Join(c.pool.Accelerators, ", ")))
		}
		p.Of[fmt.Sprintf("pools[%d]", len(cfg.Pools))] = c.remarks
		c.pool.Name = freeName(c.pool.Name, cfg.Pools)
		cfg.Pools = append(cfg.Pools, c.pool)
	}
	config.SetDefaults(cfg)
}

func freeName(name string, taken []config.Pool) string {
	free := name
	for i := 2; slices.ContainsFunc(taken, func(pool config.Pool) bool { return pool.Name == free }); i++ {
		free = fmt.Sprintf("%s-%d", name, i)
	}
	return free
}

// claims tells whether two pools have a node in common.
func claims(a, b *config.Pool) bool {
	key, values := a.Label()
	otherKey, others := b.Label()
	return key == otherKey && slices.ContainsFunc(values, func(v string) bool { return slices.Contains(others, v) })
}

func nodesOf(pool *config.Pool) string {
	key, values := pool.Label()
	if len(pool.NodePools) > 0 {
		return "NodePool " + strings.Join(values, ", ")
	}
	return fmt.Sprintf("nodes with %s=%s", key, strings.Join(values, ", "))
}

// candidates are one for each NodePool that starts nodes, or where there is none, for each group of nodes.
func candidates(facts *cluster.Snapshot) []*candidate {
	var found []*candidate
	for name, np := range facts.NodePools.All() {
		if np.Static || np.Problem != "" {
			continue
		}
		c := &candidate{pool: config.Pool{Name: poolName(name), NodePools: []string{name}}}
		for _, node := range facts.Nodes.All() {
			if node.Labels[config.NodePoolLabel] == name {
				c.add(node)
			}
		}
		for resource := range np.Limits {
			c.offer(string(resource))
		}
		for _, taint := range np.Taints {
			if _, known := placement.Glob(taint.Key); known {
				c.offer(taint.Key)
			}
		}
		found = append(found, c)
	}
	if len(found) > 0 || facts.NodePools.Len() > 0 {
		return found
	}
	return grouped(facts)
}

// grouped are the groups of nodes by the first label that has some.
func grouped(facts *cluster.Snapshot) []*candidate {
	for _, label := range groupLabels {
		groups := map[string]*candidate{}
		for _, node := range facts.Nodes.All() {
			value := node.Labels[label]
			if value == "" {
				continue
			}
			if groups[value] == nil {
				groups[value] = &candidate{pool: config.Pool{
					Name: poolName(value), NodeLabel: &config.NodeLabel{Key: label, Values: []string{value}}, Autoscaler: config.NoAutoscaler,
				}, remarks: []string{Decide + "None adds nodes to it; or does the Cluster Autoscaler (autoscaler: ClusterAutoscaler)?"}}
			}
			groups[value].add(node)
		}
		if len(groups) > 0 {
			var found []*candidate
			for _, value := range slices.Sorted(maps.Keys(groups)) {
				found = append(found, groups[value])
			}
			return found
		}
	}
	return nil
}

// poolName is a pool's name that is short, and one for a Deployment too.
func poolName(nodes string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(nodes))
	name = strings.Trim(strings.TrimPrefix(name, "spaces-"), "-")
	return cmp.Or(strings.Trim(name[:min(len(name), 40)], "-"), "pool")
}

func (c *candidate) add(node *corev1.Node) {
	c.nodes = append(c.nodes, node.Name)
	before, has := len(c.pool.Accelerators), false
	for name, quantity := range node.Status.Allocatable {
		if _, known := placement.Glob(string(name)); known && quantity.Sign() > 0 {
			c.offer(string(name))
			has = true
		}
	}
	if has || len(c.pool.Accelerators) > before {
		c.accelerated++
	}
}

// offer adds the glob over a vendor's accelerators; other extended resources, such as network devices, choose no pool.
func (c *candidate) offer(resource string) {
	if glob, known := placement.Glob(resource); known && !slices.Contains(c.pool.Accelerators, glob) {
		c.pool.Accelerators = append(c.pool.Accelerators, glob)
		slices.Sort(c.pool.Accelerators)
	}
}

// assign finds for each template the pool that its Workspaces are to run in.
func (p *Proposal) assign(open []*candidate, facts *cluster.Snapshot) {
	cfg := &config.WarmPoolConfiguration{Pools: slices.Clone(p.Values.WarmPoolConfiguration.Pools)}
	taken := len(cfg.Pools)
	for _, c := range open {
		pool := c.pool
		pool.Name = freeName(pool.Name, cfg.Pools)
		cfg.Pools = append(cfg.Pools, pool)
	}
	config.SetDefaults(cfg)
	pools, sizes := placement.Compile(cfg, facts, placement.Seen{}), sizing.NewTracker(cfg).Update(facts)
	for _, template := range facts.Templates.All() {
		ref := config.TemplateRef{Namespace: template.Namespace, Name: template.Name}
		if slices.ContainsFunc(cfg.Pools[:taken], func(pool config.Pool) bool { return slices.Contains(pool.Templates, ref) }) {
			continue
		}
		var able []int
		for i := range cfg.Pools {
			if suits(template, pools.Get(cfg.Pools[i].Name), pools, sizes.Pool(cfg.Pools[i].Name)) {
				able = append(able, i)
			}
		}
		if len(able) == 0 {
			continue
		}
		first := able[0]
		if first < taken {
			p.Values.WarmPoolConfiguration.Pools[first].Templates = append(p.Values.WarmPoolConfiguration.Pools[first].Templates, ref)
		} else {
			open[first-taken].templates = append(open[first-taken].templates, template)
		}
		if len(able) == 1 {
			continue
		}
		var others []string
		for _, i := range able[1:] {
			others = append(others, nodesOf(&cfg.Pools[i]))
		}
		remark := fmt.Sprintf("%sWorkspaces of %s could run on %s too; this is the first. The template's node selection would tell", Decide, ref, strings.Join(others, ", "))
		if first < taken {
			p.remark(fmt.Sprintf("pools[%d]", first), "%s", remark)
		} else {
			open[first-taken].remarks = append(open[first-taken].remarks, remark)
		}
	}
}

// suits tells whether Workspaces of the template could run in the pool: by accelerators, node selection, and room.
func suits(template *cluster.WorkspaceTemplate, pool *placement.Pool, pools *placement.Pools, sizes *sizing.PoolSizes) bool {
	spec := &corev1.PodSpec{NodeSelector: template.NodeSelector, Affinity: template.Affinity, Containers: []corev1.Container{{Resources: template.DefaultResources}}}
	if !pool.Offers(pools.Accelerators(spec)) || pool.Fit(spec).Conflict {
		return false
	}
	asked := sizing.TemplateOf(template).Default
	return len(sizes.Shapes) == 0 || slices.ContainsFunc(sizes.Shapes, func(s *sizing.Shape) bool { return sizing.Fits(asked, s.Available()) })
}
