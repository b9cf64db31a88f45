package policy

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/auth/rbac/validation"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
)

// Applies to: the ServiceAccounts of Cluster Proportional Autoscalers (CPA) of placeholders.
// Requires: list and watch of nodes, get and update of its targets' scale, get of its ConfigMap, and create of
// ConfigMaps with --default-params.
// Why: what CPA may not do is a line in its log, and the placeholders stay as many as they are.
var cpaRBAC = &Rule{
	ID:        "cpa-rbac",
	Summary:   "CPA's ServiceAccount may list and watch nodes, get and update its target's scale, get (with --default-params also create) its ConfigMap.",
	Fix:       "Grant it by a Role or ClusterRole bound to CPA's ServiceAccount.",
	Subject:   ProportionalScaler,
	Action:    config.Audit,
	Severity:  SeverityError,
	AuditOnly: true,
	around: func(a *Audit) []Finding {
		return a.eachAutoscaler(func(s *autoscaler) []Finding { return checkCPARBAC(a, s) })
	},
}

func checkCPARBAC(a *Audit, s *autoscaler) []Finding {
	spec := &s.Spec.Template.Spec
	account := cmp.Or(spec.ServiceAccountName, spec.DeprecatedServiceAccount, "default")
	path := templateSpecPath.Child("serviceAccountName")
	if s.namespace == "" || strings.Contains(s.namespace, "$(") {
		return nil // cpa-config or cpa-target speak
	}
	granted := a.grantedTo(s.Namespace, account, s.namespace)
	var missing, later []string
	for _, need := range s.needs() {
		rules := granted.cluster
		if need.namespaced {
			rules = slices.Concat(granted.cluster, granted.namespace)
		}
		switch covered, _ := validation.Covers(rules, []rbacv1.PolicyRule{need.rule}); {
		case covered:
		case need.later:
			later = append(later, need.text)
		default:
			missing = append(missing, need.text)
		}
	}
	if len(missing)+len(later) > 0 && granted.unknown != "" {
		return []Finding{notVerified(path, "rights of ServiceAccount "+s.Namespace+"/"+account+": "+granted.unknown)}
	}
	var findings []Finding
	if len(missing) > 0 {
		findings = append(findings, s.may(path, account, missing))
	}
	if len(later) > 0 {
		findings = append(findings, s.may(path, account, later).milder(SeverityWarning))
	}
	return findings
}

func (s *autoscaler) may(path *field.Path, account string, missing []string) Finding {
	return invalid(path, account, "ServiceAccount "+s.Namespace+"/"+account+" may not "+strings.Join(missing, ", ")).
		withFix("Bind a Role or ClusterRole with these rights to the ServiceAccount.")
}

// need is something that CPA does, in words and as the rule that allows it. Later is what it does only once its
// ConfigMap is deleted.
type need struct {
	text              string
	rule              rbacv1.PolicyRule
	namespaced, later bool
}

func (s *autoscaler) needs() []need {
	rule := func(group, resource, name string, verbs ...string) rbacv1.PolicyRule {
		r := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
		if name != "" {
			r.ResourceNames = []string{name}
		}
		return r
	}
	needs := []need{
		{text: "list nodes", rule: rule("", "nodes", "", "list")},
		{text: "watch nodes", rule: rule("", "nodes", "", "watch")},
	}
	in := " in namespace " + s.namespace
	for _, t := range s.targets {
		if t.Kind == "deployment" && t.Name != "" {
			for _, verb := range []string{"get", "update"} {
				needs = append(needs, need{
					text: verb + " deployments/scale " + t.Name + in, namespaced: true,
					rule: rule("apps", "deployments/scale", t.Name, verb),
				})
			}
		}
	}
	if name := s.flags["configmap"]; name != "" {
		needs = append(needs, need{text: "get configmap " + name + in, rule: rule("", "configmaps", name, "get"), namespaced: true})
	}
	if _, given := s.flags["default-params"]; given {
		// A right to create cannot be limited to a name.
		needs = append(needs, need{
			text: "create configmaps" + in, rule: rule("", "configmaps", "", "create"), namespaced: true,
			later: s.params.object.Kind == "ConfigMap",
		})
	}
	return needs
}

// grants are the rules that hold for somebody in the whole cluster and in one namespace; unknown says what of them could
// not be read, empty: all were.
type grants struct {
	cluster, namespace []rbacv1.PolicyRule
	unknown            string
}

// grantedTo gathers what a ServiceAccount may do in a namespace, by the bindings that name it or a group that it is in.
func (a *Audit) grantedTo(accountNamespace, account, namespace string) grants {
	var g grants
	for _, kind := range []string{
		reasonOf("Roles", a.facts.Roles, namespace), reasonOf("RoleBindings", a.facts.RoleBindings, namespace),
		reasonOf("ClusterRoles", a.facts.ClusterRoles, ""), reasonOf("ClusterRoleBindings", a.facts.ClusterRoleBindings, ""),
	} {
		g.unknown = cmp.Or(g.unknown, kind)
	}
	for _, binding := range slices.Concat(malformedOf(a.facts.ClusterRoleBindings, ""), malformedOf(a.facts.RoleBindings, namespace+"/")) {
		g.unknown = cmp.Or(g.unknown, binding)
	}
	bound := false
	is := func(subject rbacv1.Subject) bool { return isServiceAccount(subject, accountNamespace, account) }
	for _, binding := range a.facts.ClusterRoleBindings.All() {
		if slices.ContainsFunc(binding.Subjects, is) {
			bound = true
			g.cluster = append(g.cluster, a.clusterRules(binding.RoleRef.Name, &g)...)
		}
	}
	for _, binding := range a.facts.RoleBindings.Prefix(namespace + "/") {
		bound = bound || slices.ContainsFunc(binding.Subjects, is)
		switch {
		case !slices.ContainsFunc(binding.Subjects, is):
		case binding.RoleRef.Kind == "ClusterRole":
			g.namespace = append(g.namespace, a.clusterRules(binding.RoleRef.Name, &g)...)
		default:
			key := namespace + "/" + binding.RoleRef.Name
			if role := a.facts.Roles.Get(key); role != nil {
				g.namespace = append(g.namespace, role.Rules...)
			} else {
				g.unknown = cmp.Or(g.unknown, absent("Role "+key, key, a.facts.Roles))
			}
		}
	}
	if !bound && !a.facts.RoleBindings.Whole() {
		g.unknown = cmp.Or(g.unknown, "no binding of it is among these files")
	}
	return g
}

// clusterRules are those of a ClusterRole and of all that it aggregates. Of those that every API server brings along,
// which files do not have, only cluster-admin is known by heart.
func (a *Audit) clusterRules(name string, g *grants) []rbacv1.PolicyRule {
	role := a.facts.ClusterRoles.Get(name)
	switch {
	case role == nil && name == "cluster-admin":
		return []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
	case role == nil && (strings.HasPrefix(name, "system:") || slices.Contains([]string{"admin", "edit", "view"}, name)):
		g.unknown = cmp.Or(g.unknown, "ClusterRole "+name+" is not among the objects")
		return nil
	case role == nil:
		g.unknown = cmp.Or(g.unknown, absent("ClusterRole "+name, name, a.facts.ClusterRoles))
		return nil
	}
	rules := slices.Clone(role.Rules)
	if role.AggregationRule == nil {
		return rules
	}
	for i := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			continue // the controller can do no better
		}
		for _, part := range a.facts.ClusterRoles.All() {
			if selector.Matches(labels.Set(part.Labels)) {
				rules = append(rules, part.Rules...)
			}
		}
	}
	return rules
}

func isServiceAccount(subject rbacv1.Subject, namespace, name string) bool {
	switch subject.Kind {
	case rbacv1.ServiceAccountKind:
		return subject.Namespace == namespace && subject.Name == name
	case rbacv1.UserKind:
		return subject.Name == "system:serviceaccount:"+namespace+":"+name
	case rbacv1.GroupKind:
		return slices.Contains([]string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}, subject.Name)
	}
	return false
}

// malformedOf says why the objects whose keys begin so could not be read, one clause each.
func malformedOf[T any](facts cluster.Facts[T], prefix string) []string {
	var reasons []string
	for _, key := range facts.AllMalformed() {
		if strings.HasPrefix(key, prefix) {
			reasons = append(reasons, key+": "+facts.Malformed(key))
		}
	}
	return reasons
}

// absent says why an object that is not there is not known either; empty: it does not exist.
func absent[T any](what, key string, facts cluster.Facts[T]) string {
	switch reason := facts.Malformed(key); {
	case reason != "":
		return what + ": " + reason
	case !facts.Whole():
		return what + " " + facts.Missing()
	default:
		return ""
	}
}

// reasonOf says why facts of a kind are not known in a namespace; empty where they are.
func reasonOf[T any](kind string, facts cluster.Facts[T], namespace string) string {
	if reason := facts.ReasonIn(namespace); reason != "" {
		return kind + ": " + reason
	}
	return ""
}
