package policy

import "strings"

// Applies to: the ServiceAccounts of Cluster Proportional Autoscalers (CPA) of placeholders.
// Requires: list and watch of nodes, get and update of its targets' scale, get of its ConfigMap, and create of
// ConfigMaps with --default-params.
// Why: what CPA may not do is a line in its log, and the placeholders stay as many as they are.
var cpaRBAC = &Rule{
	ID:       "cpa-rbac",
	Summary:  "CPA's ServiceAccount may list and watch nodes, get and update its target's scale, get (with --default-params also create) its ConfigMap.",
	Fix:      "Bind a Role or ClusterRole with these rights to the ServiceAccount.",
	Subject:  ProportionalScaler,
	Severity: SeverityError,
	audit:    func(a *Audit) { a.eachCPA(judgeRights) },
}

func judgeRights(a *Audit, s scaler) {
	if s.Works == "" || strings.Contains(s.Works, "$(") {
		return // cpa-config or cpa-target speak
	}
	path, account := templateSpecPath.Child("serviceAccountName"), s.Namespace+"/"+s.Account()
	missing, later, unknown := s.Missing(a.facts)
	if unknown != "" && len(missing)+len(later) > 0 {
		s.notVerified(path, "rights of ServiceAccount %s: %s", account, unknown)
		return
	}
	if len(missing) > 0 {
		s.invalid(path, s.Account(), "ServiceAccount %s may not %s", account, strings.Join(missing, ", "))
	}
	if len(later) > 0 {
		s.invalid(path, s.Account(), "ServiceAccount %s may not %s", account, strings.Join(later, ", ")).milder(SeverityWarning)
	}
}
