package policy

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
)

// Applies to: NodePools of the pools that start nodes for pods.
// Requires: consolidationPolicy WhenEmpty, or budgets that let no node go for being underutilized.
// Why: a node with a placeholder on it looks underutilized; Karpenter's default policy takes the warm nodes away.
var nodePoolConsolidation = &Rule{
	ID:        "nodepool-consolidation",
	Summary:   "consolidationPolicy is WhenEmpty: with another one Karpenter removes or swaps warm nodes, which look underutilized.",
	Fix:       "Set spec.disruption.consolidationPolicy: WhenEmpty.",
	Subject:   NodePool,
	Action:    config.Audit,
	Severity:  SeverityWarning,
	AuditOnly: true,
	around:    checkConsolidation,
}

func checkConsolidation(a *Audit) []Finding {
	findings := a.unreadNodePools()
	for _, np := range a.nodePools() {
		if f, found := consolidationOf(np.NodePool); found {
			findings = append(findings, f.about("NodePool", "", np.Name, np.pool).in(np.definition))
		}
	}
	return findings
}

func consolidationOf(np *cluster.NodePool) (f Finding, found bool) {
	path := field.NewPath("spec", "disruption", "consolidationPolicy")
	policy := np.Disruption.ConsolidationPolicy
	switch {
	case np.Problem != "":
		return notVerified(path, np.Problem), true
	case np.Static || policy == "WhenEmpty" || keepsUnderutilized(np.Disruption.Budgets):
		return Finding{}, false
	case policy == "":
		return required(path, "Karpenter's default is WhenEmptyOrUnderutilized: it removes warm nodes, whose placeholders ask for little"), true
	case policy == "WhenEmptyOrUnderutilized":
		return invalid(path, policy, "Karpenter removes warm nodes, whose placeholders ask for little"), true
	case policy == "Balanced":
		return invalid(path, policy, "Karpenter may still move notebooks and their warm nodes, where that saves much"), true
	default:
		return invalid(path, policy, fmt.Sprintf("warmpool does not know policy %q", policy)).milder(SeverityInfo), true
	}
}

// keepsUnderutilized tells whether some budget, at all times, lets no node go for being underutilized.
func keepsUnderutilized(budgets []cluster.DisruptionBudget) bool {
	return slices.ContainsFunc(budgets, func(b cluster.DisruptionBudget) bool {
		return b.Nodes == "0" && b.Schedule == "" && (len(b.Reasons) == 0 || slices.Contains(b.Reasons, "Underutilized"))
	})
}
