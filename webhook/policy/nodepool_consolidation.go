package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/cluster"
)

// Applies to: NodePools of the pools that start nodes for pods.
// Requires: consolidationPolicy WhenEmpty, or consolidation switched off: by consolidateAfter Never, by a budget of 0 that
// holds at all times and for underutilized nodes, or by do-not-disrupt on all nodes (the template's annotation).
// Why: a node with a placeholder on it looks underutilized; Karpenter's default policy takes the warm nodes away.
var nodePoolConsolidation = &Rule{
	ID:       "nodepool-consolidation",
	Summary:  "consolidationPolicy is WhenEmpty, or consolidation is off: else Karpenter removes or swaps warm nodes, which look underutilized.",
	Fix:      "Set spec.disruption.consolidationPolicy: WhenEmpty.",
	Subject:  NodePool,
	Severity: SeverityWarning,
	audit:    func(a *Audit) { a.eachNodePool(judgeConsolidation) },
}

func judgeConsolidation(np poolNodePool) {
	path := field.NewPath("spec", "disruption", "consolidationPolicy")
	switch policy := np.Disruption.ConsolidationPolicy; {
	case np.Static || policy == "WhenEmpty" || consolidationIsOff(np.NodePool):
	case policy == "":
		np.required(path, "Karpenter's default is WhenEmptyOrUnderutilized: it removes warm nodes, whose placeholders ask for little%s", atTimes(np.NodePool))
	case policy == "WhenEmptyOrUnderutilized":
		np.invalid(path, policy, "Karpenter removes warm nodes, whose placeholders ask for little%s", atTimes(np.NodePool))
	case policy == "Balanced":
		np.invalid(path, policy, "Karpenter may still move notebooks and their warm nodes, where that saves much%s", atTimes(np.NodePool))
	default:
		np.invalid(path, policy, "warmpool does not know policy %q", policy).milder(SeverityInfo)
	}
}

// consolidationIsOff tells whether Karpenter leaves alone all nodes with pods on them. Of several budgets the strictest
// counts, so one of 0 is enough. Karpenter reads "true" alone as do-not-disrupt of a node.
func consolidationIsOff(np *cluster.NodePool) bool {
	return np.Disruption.ConsolidateAfter == "Never" || np.Annotations[doNotDisrupt] == "true" ||
		slices.ContainsFunc(np.Disruption.Budgets, func(b cluster.DisruptionBudget) bool { return keepsUnderutilized(b) && !scheduled(b) })
}

// keepsUnderutilized tells whether the budget, while it holds, lets no node go for being underutilized.
func keepsUnderutilized(b cluster.DisruptionBudget) bool {
	nodes, err := strconv.Atoi(strings.TrimSuffix(b.Nodes, "%"))
	return err == nil && nodes == 0 && (b.Reasons == nil || slices.Contains(b.Reasons, "Underutilized"))
}

func scheduled(b cluster.DisruptionBudget) bool { return b.Schedule != "" || b.Duration != "" }

// atTimes names the budget that stops consolidation only now and then.
func atTimes(np *cluster.NodePool) string {
	i := slices.IndexFunc(np.Disruption.Budgets, func(b cluster.DisruptionBudget) bool { return keepsUnderutilized(b) && scheduled(b) })
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("; budgets[%d] stops it only at the times of its schedule (%s for %s)",
		i, clip(np.Disruption.Budgets[i].Schedule), clip(np.Disruption.Budgets[i].Duration))
}
