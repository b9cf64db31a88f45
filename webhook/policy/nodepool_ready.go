package policy

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Applies to: NodePools of the pools, and the node classes that they refer to.
// Requires: both exist, in an API version that Karpenter 1 serves, and neither is known not to be Ready.
// Why: Karpenter starts nodes for Ready NodePools only; placeholders stay Pending, and their events name no reason. What
// is written for an earlier API means something else, or nothing, to Karpenter 1.
var nodePoolReady = &Rule{
	ID:        "nodepool-ready",
	Summary:   "The NodePool and its node class exist and are Ready: Karpenter starts no node for others.",
	Fix:       "Correct what the message names; kubectl describe shows all conditions.",
	Subject:   NodePool,
	Action:    config.Audit,
	Severity:  SeverityError,
	AuditOnly: true,
	around:    checkNodePoolsReady,
}

func checkNodePoolsReady(a *Audit) []Finding {
	findings := append(obsoleteKarpenter(a), missingNodePools(a)...)
	return append(findings, a.eachNodePool(func(np poolNodePool) []Finding {
		findings := nodeClassFindings(a, np.NodePool)
		return append(findings, readyFindings(field.NewPath("status", "conditions"), "NodePool "+np.Name, np.Ready)...)
	})...)
}

// obsoleteKarpenter are the objects of Karpenter's earlier APIs, whether a pool has them or not: the API server of a
// cluster with Karpenter 1 refuses them.
func obsoleteKarpenter(a *Audit) []Finding {
	var findings []Finding
	for _, old := range a.facts.Obsolete.All() {
		f := invalid(field.NewPath("apiVersion"), old.APIVersion, "not served by Karpenter 1, and not read as if it were "+old.Successor).
			withFix("Convert it to " + old.Successor + ", as Karpenter's upgrade guide says, or remove it.").milder(SeverityWarning)
		findings = append(findings, f.about(old.Kind, "", old.Name, a.poolOfNodePool(old)))
	}
	return findings
}

// poolOfNodePool is the first pool that lists the NodePool by name; empty: none does.
func (a *Audit) poolOfNodePool(old *cluster.Obsolete) string {
	for _, pool := range a.pools.All() {
		if old.Kind == "NodePool" && slices.Contains(pool.Config.NodePools, old.Name) {
			return pool.Config.Name
		}
	}
	return ""
}

// missingNodePools are those that the configuration names and no one has, or no one can read.
func missingNodePools(a *Audit) []Finding {
	var findings []Finding
	for _, pool := range a.pools.All() {
		if len(pool.Config.NodePools) == 0 {
			continue
		}
		if !a.facts.NodePools.Known() {
			return nil // said once for all, by eachNodePool
		}
		for _, name := range pool.Config.NodePools {
			if a.facts.NodePools.Get(name) == nil && a.facts.Obsolete.Get("NodePool/"+name) == nil {
				findings = append(findings, missingNodePool(a, pool, name).about("NodePool", "", name, pool.Config.Name))
			}
		}
	}
	return findings
}

func missingNodePool(a *Audit, pool *placement.Pool, name string) Finding {
	path := field.NewPath("metadata", "name")
	if reason := a.facts.NodePools.Malformed(name); reason != "" {
		return notVerified(path, reason)
	}
	message := fmt.Sprintf("the NodePool does not exist: it starts no node for pool %s", pool.Config.Name)
	var others []string
	for other := range a.facts.NodePools.All() {
		others = append(others, other)
	}
	if len(others) > 0 {
		message += "; NodePools are " + clip(strings.Join(others, ", "))
	}
	f := invalid(path, name, message).withFix("Create the NodePool, or correct nodePools in the configuration.")
	return orElsewhere(f, a.facts.NodePools, "the NodePool is not among these files: without it no node is started for pool "+pool.Config.Name)
}

func nodeClassFindings(a *Audit, np *cluster.NodePool) []Finding {
	path := field.NewPath("spec", "template", "spec", "nodeClassRef")
	ref := np.NodeClass
	if ref.Name == "" {
		return []Finding{required(path, "without a node class Karpenter cannot tell which machines to start").
			withFix("Set group, kind and name of an existing node class.")}
	}
	classes := a.facts.NodeClasses
	what := fmt.Sprintf("%s %s", ref.Kind, ref.Name)
	switch class, malformed := classes.Get(ref.Key()), classes.Malformed(ref.Key()); {
	case !classes.Known():
		return []Finding{notVerified(path, what+": "+classes.Reason())}
	case malformed != "":
		return []Finding{notVerified(path, what+": "+malformed)}
	case class == nil:
		f := invalid(path.Child("name"), ref.Name, fmt.Sprintf("%s (%s) does not exist: Karpenter starts no node", what, ref.Group)).
			withFix("Create the node class, or correct the nodeClassRef.")
		return []Finding{orElsewhere(f, classes, fmt.Sprintf("%s (%s) is not among these files: without it Karpenter starts no node", what, ref.Group))}
	default:
		return readyFindings(path.Child("name"), what, class.Ready)
	}
}

// readyFindings judge a condition Ready. Without one, as in files, nothing is known, and nothing said.
func readyFindings(path *field.Path, what string, ready *cluster.Condition) []Finding {
	if ready == nil || ready.Status == corev1.ConditionTrue {
		return nil
	}
	why := clip(strings.Trim(ready.Reason+": "+ready.Message, ": "))
	if why == "" {
		why = "Karpenter gives no reason"
	}
	if ready.Status == corev1.ConditionFalse {
		return []Finding{invalid(path, ready.Status, fmt.Sprintf("%s is not Ready (%s): Karpenter starts no node", what, why))}
	}
	return []Finding{invalid(path, ready.Status, fmt.Sprintf("it is not known yet whether %s is Ready (%s): until then Karpenter starts no node", what, why)).
		milder(SeverityInfo)}
}
