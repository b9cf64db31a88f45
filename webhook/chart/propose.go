package chart

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/audit"
	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

// Decide begins a remark about what no one but the reader can know.
const Decide = "decide: "

// Proposal is the values for a cluster, and why they are so.
type Proposal struct {
	Values Values
	// Remarks are about the whole; Of are about a field, by its path in the values: pools[0].sizing.
	Remarks []string
	Of      map[string][]string
	// TakesOver tells that there are objects which the chart makes too: Helm is to be told to take them over.
	TakesOver bool
}

func (p *Proposal) remark(path, format string, args ...any) {
	p.Of[path] = append(p.Of[path], fmt.Sprintf(format, args...))
}

func (p *Proposal) say(format string, args ...any) {
	p.Remarks = append(p.Remarks, fmt.Sprintf(format, args...))
}

// Propose makes values for a cluster. cfg is the configuration that it holds; nil where it holds none: pools are then those of
// the placeholders that there are, and of the NodePools that Workspaces of the templates may use. The error says why nothing
// can be proposed.
func Propose(facts *cluster.Snapshot, cfg *config.WarmPoolConfiguration, now time.Time) (*Proposal, error) {
	p := &Proposal{Of: map[string][]string{}}
	inferred := cfg == nil
	if inferred {
		cfg, _ = audit.Infer(facts)
		delete(cfg.Rules, "placeholder-elsewhere") // a namespace is named below
	}
	p.Values.WarmPoolConfiguration = *cfg
	if inferred {
		p.addPools(facts)
	} else {
		p.say("The pools are those of the configuration that the cluster holds.")
	}
	if len(p.Values.WarmPoolConfiguration.Pools) == 0 {
		return nil, fmt.Errorf("no pool can be proposed: %s", nothing(facts))
	}
	if err := p.addPlaceholders(facts, now); err != nil {
		return nil, err
	}
	p.Values.tidy()
	p.limits(facts)
	return p, nil
}

// nothing says why there is no pool.
func nothing(facts *cluster.Snapshot) string {
	switch {
	case !facts.NodePools.Known() && facts.Nodes.Len() == 0:
		return "NodePools are not known (" + facts.NodePools.Reason() + "), and there is no node"
	case facts.NodePools.Len() == 0 && facts.Nodes.Len() == 0:
		return "there is no Karpenter NodePool, no node and no placeholder Deployment: nothing tells which nodes are to be kept warm"
	case facts.NodePools.Len() == 0:
		return "there is no Karpenter NodePool, and nodes have none of the labels that tell groups of nodes (" + strings.Join(groupLabels, ", ") + ")"
	default:
		return "Karpenter starts no nodes for pods in any NodePool: each has a fixed number of them (spec.replicas)"
	}
}

// tidy leaves out what is the default anyway.
func (v *Values) tidy() {
	standard := config.WarmPoolConfiguration{}
	config.SetDefaults(&standard)
	if v.Placeholders == standard.Placeholders {
		v.Placeholders = config.Placeholders{}
	}
	if fmt.Sprint(v.Workspaces.Selector) == fmt.Sprint(standard.Workspaces.Selector) {
		v.Workspaces.Selector = nil
	}
	if v.Workspaces.OnConflict == standard.Workspaces.OnConflict {
		v.Workspaces.OnConflict = ""
	}
	if v.AuditInterval != nil && *v.AuditInterval == *standard.AuditInterval {
		v.AuditInterval = nil
	}
	for i := range v.Pools {
		pool := &v.Pools[i].Pool
		if pool.Autoscaler == config.Karpenter {
			pool.Autoscaler = ""
		}
		if pool.PrePull == config.PrePullDefault {
			pool.PrePull = ""
		}
		if pool.WarmFirst != nil && *pool.WarmFirst {
			pool.WarmFirst = nil
		}
	}
	v.WarmPoolConfiguration.Pools, v.TypeMeta = nil, metav1.TypeMeta{}
}

// limits says what the proposal could not look at.
func (p *Proposal) limits(facts *cluster.Snapshot) {
	if !facts.NodePools.Known() {
		p.say("NodePools are not known: %s.", facts.NodePools.Reason())
	} else if facts.NodePools.Len() == 0 {
		p.say("There is no Karpenter NodePool: pools are told by a label of their nodes, and nothing adds nodes.")
	}
	if facts.Templates.Len() == 0 {
		p.say("There is no WorkspaceTemplate: which pools are for Workspaces, what their Workspaces need and which images to pull is not known.")
	}
	for _, template := range facts.Templates.All() {
		name := template.Namespace + "/" + template.Name
		if !slices.ContainsFunc(p.Values.Pools, func(pool Pool) bool {
			return slices.ContainsFunc(pool.Templates, func(ref config.TemplateRef) bool { return ref.String() == name })
		}) {
			p.say("%sWorkspaces of template %s have no pool: none here has what they ask for.", Decide, name)
		}
	}
}

// evaluator judges by the pools as they are so far.
func (p *Proposal) evaluator(facts *cluster.Snapshot, now time.Time) (*policy.Evaluator, *config.WarmPoolConfiguration, error) {
	cfg := p.Values.WarmPoolConfiguration
	config.SetDefaults(&cfg)
	evaluator, err := policy.New(&cfg, facts, now)
	return evaluator, &cfg, err
}
