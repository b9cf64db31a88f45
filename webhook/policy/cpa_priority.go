package policy

import (
	"fmt"
	"slices"

	"warmpool.sh/webhook/config"
)

// Applies to: Cluster Proportional Autoscalers (CPA) of placeholders.
// Requires: priority class system-cluster-critical (or system-node-critical).
// Why: where CPA is evicted, or waits for a node, no one scales the warm pool.
var cpaPriority = &Rule{
	ID:        "cpa-priority",
	Summary:   "CPA has priority class system-cluster-critical: without it the warm pool stays as large as it happens to be.",
	Fix:       "Set priorityClassName: system-cluster-critical.",
	Subject:   ProportionalScaler,
	Action:    config.Audit,
	Severity:  SeverityInfo,
	AuditOnly: true,
	around:    func(a *Audit) []Finding { return a.eachAutoscaler(checkCPAPriority) },
}

func checkCPAPriority(s *autoscaler) []Finding {
	path, class := templateSpecPath.Child("priorityClassName"), s.Spec.Template.Spec.PriorityClassName
	switch {
	case slices.Contains([]string{"system-cluster-critical", "system-node-critical"}, class):
		return nil
	case class == "":
		return []Finding{required(path, "CPA may be evicted for any other pod, and then no one scales the placeholders")}
	default:
		return []Finding{invalid(path, class, fmt.Sprintf("CPA may be evicted for pods above class %s, and then no one scales the placeholders", class))}
	}
}
