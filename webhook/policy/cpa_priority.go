package policy

// Applies to: Cluster Proportional Autoscalers (CPA) of placeholders.
// Requires: priority class system-cluster-critical (or system-node-critical).
// Why: where CPA is evicted, or waits for a node, no one scales the warm pool.
var cpaPriority = &Rule{
	ID:       "cpa-priority",
	Summary:  "CPA has priority class system-cluster-critical: without it the warm pool stays as large as it happens to be.",
	Fix:      "Set priorityClassName: system-cluster-critical.",
	Subject:  ProportionalScaler,
	Severity: SeverityInfo,
	audit: func(a *Audit) {
		a.eachCPA(func(_ *Audit, s scaler) {
			path := templateSpecPath.Child("priorityClassName")
			switch class := s.Spec.Template.Spec.PriorityClassName; class {
			case "system-cluster-critical", "system-node-critical":
			case "":
				s.required(path, "CPA may be evicted for any other pod, and then no one scales the placeholders")
			default:
				s.invalid(path, class, "CPA may be evicted for pods above class %s, and then no one scales the placeholders", class)
			}
		})
	},
}
