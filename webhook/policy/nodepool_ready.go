package policy

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/placement"
)

// Applies to: NodePools of the pools, and the node classes that they refer to.
// Requires: both exist, in an API version that Karpenter 1 serves, and neither is known not to be Ready.
// Why: Karpenter starts nodes for Ready NodePools only; placeholders stay Pending, and their events name no reason. What
// is written for an earlier API means something else, or nothing, to Karpenter 1.
var nodePoolReady = &Rule{
	ID:       "nodepool-ready",
	Summary:  "The NodePool and its node class exist and are Ready: Karpenter starts no node for others.",
	Fix:      "Correct what the message names; kubectl describe shows all conditions.",
	Subject:  NodePool,
	Severity: SeverityError,
	audit: func(a *Audit) {
		auditObsolete(a)
		if a.facts.NodePools.Known() { // else reported by eachNodePool
			auditMissingNodePools(a)
		}
		a.eachNodePool(func(np poolNodePool) {
			judgeNodeClass(a, np)
			judgeReady(np.about, field.NewPath("status", "conditions"), "NodePool "+np.Name, np.Ready)
		})
	},
}

// auditObsolete reports objects of Karpenter's earlier APIs, whether a pool has them or not: the API server of a cluster with
// Karpenter 1 refuses them.
func auditObsolete(a *Audit) {
	for _, old := range a.facts.Obsolete.All() {
		pool := ""
		lists := func(p *placement.Pool) bool {
			return old.Kind == "NodePool" && slices.Contains(p.Config.NodePools, old.Name)
		}
		if i := slices.IndexFunc(a.pools.All(), lists); i >= 0 {
			pool = a.pools.All()[i].Config.Name
		}
		a.about(old.Kind, "", old.Name, pool).invalid(field.NewPath("apiVersion"), old.APIVersion, "not served by Karpenter 1, and not read as if it were %s", old.Successor).
			withFix("Convert it to %s, as Karpenter's upgrade guide says, or remove it.", old.Successor).milder(SeverityWarning)
	}
}

// auditMissingNodePools reports those that the configuration names and no one has, or no one can read.
func auditMissingNodePools(a *Audit) {
	path := field.NewPath("metadata", "name")
	var others []string
	for name := range a.facts.NodePools.All() {
		others = append(others, name)
	}
	there := ""
	if len(others) > 0 {
		there = "; NodePools are " + clipped(others)
	}
	for _, pool := range a.pools.All() {
		for _, name := range pool.Config.NodePools {
			about := a.about("NodePool", "", name, pool.Config.Name)
			switch malformed := a.facts.NodePools.Malformed(name); {
			case a.facts.NodePools.Get(name) != nil, a.facts.Obsolete.Get("NodePool/"+name) != nil:
			case malformed != "":
				about.notVerified(path, "%s", malformed)
			default:
				about.invalid(path, name, "the NodePool does not exist: it starts no node for pool %s%s", pool.Config.Name, there).
					withFix("Create the NodePool, or correct nodePools in the configuration.").
					orElsewhere(a.facts.NodePools, "the NodePool is not among these files: without it no node is started for pool %s", pool.Config.Name)
			}
		}
	}
}

func judgeNodeClass(a *Audit, np poolNodePool) {
	path, ref := field.NewPath("spec", "template", "spec", "nodeClassRef"), np.NodeClass
	if ref.Name == "" {
		np.required(path, "without a node class Karpenter cannot tell which machines to start").
			withFix("Set group, kind and name of an existing node class.")
		return
	}
	classes, what := a.facts.NodeClasses, ref.Kind+" "+ref.Name
	class, unreadable := classes.Get(ref.Key()), classes.Unreadable(what, what, ref.Key())
	switch {
	case unreadable != "":
		np.notVerified(path, "%s", unreadable)
	case class == nil:
		np.invalid(path.Child("name"), ref.Name, "%s (%s) does not exist: Karpenter starts no node", what, ref.Group).
			withFix("Create the node class, or correct the nodeClassRef.").
			orElsewhere(classes, "%s (%s) is not among these files: without it Karpenter starts no node", what, ref.Group)
	default:
		judgeReady(np.about, path.Child("name"), what, class.Ready)
	}
}

// judgeReady judges a condition Ready. Without one, as in files, nothing is known, and nothing said.
func judgeReady(about about, path *field.Path, what string, ready *cluster.Condition) {
	if ready == nil || ready.Status == corev1.ConditionTrue {
		return
	}
	why := cmp.Or(clip(strings.Trim(ready.Reason+": "+ready.Message, ": ")), "Karpenter gives no reason")
	if ready.Status == corev1.ConditionFalse {
		about.invalid(path, ready.Status, "%s is not Ready (%s): Karpenter starts no node", what, why)
		return
	}
	about.invalid(path, ready.Status, "it is not known yet whether %s is Ready (%s): until then Karpenter starts no node", what, why).milder(SeverityInfo)
}
