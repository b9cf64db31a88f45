package policy

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/sizing"
)

// Audit is a whole cluster as the rules see it that judge more than one object.
type Audit struct {
	facts  *cluster.Snapshot
	config *config.WarmPoolConfiguration
	pools  *placement.Pools
	sizes  *sizing.Sizes
	now    time.Time
	// isWorkspace tells the labels of Workspaces' pods and Deployments.
	isWorkspace func(labels map[string]string) bool

	// placeholders are all placeholder Deployments, workspaces the pods of Workspaces that have not ended, in the order of
	// their keys.
	placeholders, workspaces []*Object
	// autoscalers are the CPAs that scale placeholders, or mean to.
	autoscalers []*autoscaler

	podsOf map[string][]*corev1.Pod // by the Deployment's key; see pods
}

// Audit judges every placeholder, every Workspace pod and what is around them. Findings come in the order of the table
// for each object, objects by kind and key, then those of whole-cluster rules in the order of the table. objects is how
// many objects were judged by rules of their own.
func (e *Evaluator) Audit() (findings []Finding, objects int) {
	a := e.audit()
	for _, o := range a.placeholders {
		for _, f := range e.check(o, true) {
			findings = append(findings, f.about("Deployment", o.Namespace, o.Name, o.PoolName()).in(o.definition))
		}
	}
	for _, o := range a.workspaces {
		for _, f := range e.check(o, true) {
			findings = append(findings, f.about("Pod", o.Namespace, o.Name, o.PoolName()).in(o.definition))
		}
	}
	for i, rule := range table {
		if rule.around == nil {
			continue
		}
		for _, f := range rule.around(a) {
			action := e.actions[""][i]
			if actions, ok := e.actions[f.Pool]; ok {
				action = actions[i]
			}
			if action != config.Off && !e.exempts(rule, f.Object.Namespace, f.Object.Name) {
				findings = append(findings, f.of(rule, action))
			}
		}
	}
	return findings, len(a.placeholders) + len(a.workspaces)
}

func (e *Evaluator) audit() *Audit {
	a := &Audit{facts: e.facts, config: e.config, pools: e.pools, sizes: e.sizes, now: e.now, isWorkspace: e.IsWorkspace}
	for definition, d := range e.facts.Deployments.Defined() {
		if e.IsPlaceholder(d) {
			a.placeholders = append(a.placeholders, e.Placeholder(d, d.Namespace).in(definition))
		}
	}
	for definition, pod := range e.facts.Pods.Defined() {
		if !Ended(pod) && e.IsWorkspace(pod.Labels) {
			a.workspaces = append(a.workspaces, e.Pod(pod, pod.Namespace).in(definition))
		}
	}
	a.autoscalers = a.findAutoscalers()
	return a
}

// of are the placeholders of a pool.
func (a *Audit) of(pool string) []*Object {
	var found []*Object
	for _, o := range a.placeholders {
		if o.PoolName() == pool {
			found = append(found, o)
		}
	}
	return found
}

// ofTemplates are the findings about the WorkspaceTemplates that pools list, each judged once, in the order of the
// configuration. Those that do not exist are the placeholders' fault.
func (a *Audit) ofTemplates(judge func(*cluster.WorkspaceTemplate) (f Finding, found bool)) []Finding {
	var findings []Finding
	seen := map[config.TemplateRef]bool{}
	for _, pool := range a.pools.All() {
		for _, ref := range pool.Config.Templates {
			if len(seen) == 0 {
				findings = unread("WorkspaceTemplates", a.facts.Templates)
			}
			if seen[ref] {
				continue
			}
			seen[ref] = true
			key := ref.String()
			var f Finding
			found := false
			if template := a.facts.Templates.Get(key); template != nil {
				f, found = judge(template)
			} else if reason := a.facts.Templates.Malformed(key); reason != "" {
				f, found = notVerified(field.NewPath("spec"), reason), true
			}
			for i, template := range a.facts.Templates.Variants(key) {
				if f, found := judge(template); found {
					findings = append(findings, f.about("WorkspaceTemplate", ref.Namespace, ref.Name, pool.Config.Name).in(i+1))
				}
			}
			if found {
				findings = append(findings, f.about("WorkspaceTemplate", ref.Namespace, ref.Name, pool.Config.Name))
			}
		}
	}
	return findings
}

// poolNodePool is a NodePool of a pool.
type poolNodePool struct {
	*cluster.NodePool
	pool       string
	definition int // which of several; 0: the only one
}

// nodePools are the NodePools of all pools, in the order of pools and names; one of several pools stands once for each.
func (a *Audit) nodePools() []poolNodePool {
	var found []poolNodePool
	for _, pool := range a.pools.All() {
		for _, np := range pool.NodePools {
			found = append(found, poolNodePool{np, pool.Config.Name, 0})
		}
		for _, name := range pool.Config.NodePools {
			for i, np := range a.facts.NodePools.Variants(name) {
				found = append(found, poolNodePool{np, pool.Config.Name, i + 1})
			}
		}
	}
	return found
}

// unreadNodePools is the finding of a rule about NodePools that cannot be read, where a pool is made of them.
func (a *Audit) unreadNodePools() []Finding {
	for _, pool := range a.pools.All() {
		if len(pool.Config.NodePools) > 0 || pool.Config.Autoscaler == config.Karpenter {
			return unread("NodePools", a.facts.NodePools)
		}
	}
	return nil
}

// eachNodePool gathers what is found about each NodePool of the pools. What could not be read, or not in full, is not
// verified; those that are missing are nodepool-ready's.
func (a *Audit) eachNodePool(judge func(poolNodePool) []Finding) []Finding {
	findings := a.unreadNodePools()
	for _, np := range a.nodePools() {
		found := []Finding{notVerified(field.NewPath("spec"), np.Problem)}
		if np.Problem == "" {
			found = judge(np)
		}
		for _, f := range found {
			findings = append(findings, f.about("NodePool", "", np.Name, np.pool).in(np.definition))
		}
	}
	return findings
}

// nodes are the nodes that carry the pool's label, in the order of their names.
func (a *Audit) nodes(pool *placement.Pool) []*corev1.Node {
	var found []*corev1.Node
	for _, node := range a.facts.Nodes.All() {
		if pool.HasNode(node) {
			found = append(found, node)
		}
	}
	return found
}

// unread is the finding of a rule whose facts are not known; none where they are.
func unread[T any](what string, facts cluster.Facts[T]) []Finding {
	if facts.Known() {
		return nil
	}
	return []Finding{notVerifiedOfNone(fmt.Sprintf("%s: %s", what, facts.Reason()))}
}

// notVerifiedOfNone is notVerified about no object, and so about no field.
func notVerifiedOfNone(why string) Finding {
	f := notVerified(field.NewPath("unknown"), why)
	f.Error.Field = ""
	return f
}

// PoolName is the name of the object's pool; empty when it has none.
func (o *Object) PoolName() string {
	if o.Pool == nil {
		return ""
	}
	return o.Pool.Config.Name
}
