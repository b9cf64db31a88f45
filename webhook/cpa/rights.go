package cpa

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/auth/rbac/validation"

	"warmpool.sh/webhook/cluster"
)

// Account is the ServiceAccount that CPA runs as.
func (s *Scaler) Account() string {
	spec := &s.Spec.Template.Spec
	return cmp.Or(spec.ServiceAccountName, spec.DeprecatedServiceAccount, "default")
}

// Missing is what CPA does and may not do, in words; later is what it does only once its ConfigMap is deleted. unknown says
// why what it may do is not known in full; empty: it is.
func (s *Scaler) Missing(facts *cluster.Snapshot) (missing, later []string, unknown string) {
	granted := s.granted(facts)
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
	return missing, later, granted.unknown
}

// need is something that CPA does, in words and as the rule that allows it.
type need struct {
	text              string
	rule              rbacv1.PolicyRule
	namespaced, later bool
}

func (s *Scaler) needs() []need {
	rule := func(verb, group, resource string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names}
	}
	needs := []need{
		{text: "list nodes", rule: rule("list", "", "nodes")},
		{text: "watch nodes", rule: rule("watch", "", "nodes")},
	}
	in := " in namespace " + s.Works
	for _, t := range s.Targets {
		if t.Kind == "deployment" && t.Name != "" {
			for _, verb := range []string{"get", "update"} {
				needs = append(needs, need{text: verb + " deployments/scale " + t.Name + in, rule: rule(verb, "apps", "deployments/scale", t.Name), namespaced: true})
			}
		}
	}
	if name := s.Flags["configmap"]; name != "" {
		needs = append(needs, need{text: "get configmap " + name + in, rule: rule("get", "", "configmaps", name), namespaced: true})
	}
	if _, given := s.Flags["default-params"]; given {
		// A right to create cannot be limited to a name.
		needs = append(needs, need{text: "create configmaps" + in, rule: rule("create", "", "configmaps"), namespaced: true, later: s.ConfigMap != nil})
	}
	return needs
}

// grants are the rules that hold for a ServiceAccount in the whole cluster and in one namespace; unknown says what of them
// could not be read, empty: all were.
type grants struct {
	facts              *cluster.Snapshot
	cluster, namespace []rbacv1.PolicyRule
	unknown            string
}

// granted gathers what CPA's ServiceAccount may do, by the bindings that name it or a group that it is in.
func (s *Scaler) granted(facts *cluster.Snapshot) grants {
	g := grants{facts: facts}
	g.unread("Roles", facts.Roles.ReasonIn(s.Works))
	g.unread("RoleBindings", facts.RoleBindings.ReasonIn(s.Works))
	g.unread("ClusterRoles", facts.ClusterRoles.Reason())
	g.unread("ClusterRoleBindings", facts.ClusterRoleBindings.Reason())
	for _, key := range facts.ClusterRoleBindings.AllMalformed() {
		g.unread(key, facts.ClusterRoleBindings.Malformed(key))
	}
	for _, key := range facts.RoleBindings.AllMalformed() {
		if strings.HasPrefix(key, s.Works+"/") {
			g.unread(key, facts.RoleBindings.Malformed(key))
		}
	}
	bound := false
	for _, binding := range facts.ClusterRoleBindings.All() {
		if slices.ContainsFunc(binding.Subjects, s.runsAs) {
			bound = true
			g.cluster = append(g.cluster, g.clusterRole(binding.RoleRef.Name)...)
		}
	}
	for _, binding := range facts.RoleBindings.Prefix(s.Works + "/") {
		if slices.ContainsFunc(binding.Subjects, s.runsAs) {
			bound = true
			g.namespace = append(g.namespace, g.role(s.Works, binding.RoleRef)...)
		}
	}
	if !bound && !facts.RoleBindings.Whole() {
		g.unknown = cmp.Or(g.unknown, "no binding of it is among these files")
	}
	return g
}

func (g *grants) unread(what, reason string) {
	if reason != "" {
		g.unknown = cmp.Or(g.unknown, what+": "+reason)
	}
}

func (g *grants) role(namespace string, ref rbacv1.RoleRef) []rbacv1.PolicyRule {
	if ref.Kind == "ClusterRole" {
		return g.clusterRole(ref.Name)
	}
	key := namespace + "/" + ref.Name
	role := g.facts.Roles.Get(key)
	if role == nil {
		g.unknown = cmp.Or(g.unknown, g.facts.Roles.Absent("Roles", "Role "+key, key))
		return nil
	}
	return role.Rules
}

// clusterRole are the rules of a ClusterRole and of all that it aggregates. Of those that every API server brings along,
// which files do not have, only cluster-admin is known by heart.
func (g *grants) clusterRole(name string) []rbacv1.PolicyRule {
	role := g.facts.ClusterRoles.Get(name)
	switch {
	case role == nil && name == "cluster-admin":
		return []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
	case role == nil && (strings.HasPrefix(name, "system:") || slices.Contains([]string{"admin", "edit", "view"}, name)):
		g.unknown = cmp.Or(g.unknown, "ClusterRole "+name+" is not among the objects")
		return nil
	case role == nil:
		g.unknown = cmp.Or(g.unknown, g.facts.ClusterRoles.Absent("ClusterRoles", "ClusterRole "+name, name))
		return nil
	case role.AggregationRule == nil:
		return role.Rules
	}
	rules := slices.Clone(role.Rules)
	for i := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			continue // the controller can do no better
		}
		for _, part := range g.facts.ClusterRoles.All() {
			if selector.Matches(labels.Set(part.Labels)) {
				rules = append(rules, part.Rules...)
			}
		}
	}
	return rules
}

// runsAs tells whether the subject of a binding is CPA's ServiceAccount, or a group that it is in.
func (s *Scaler) runsAs(subject rbacv1.Subject) bool {
	switch subject.Kind {
	case rbacv1.ServiceAccountKind:
		return subject.Namespace == s.Namespace && subject.Name == s.Account()
	case rbacv1.UserKind:
		return subject.Name == "system:serviceaccount:"+s.Namespace+":"+s.Account()
	case rbacv1.GroupKind:
		return slices.Contains([]string{"system:serviceaccounts", "system:serviceaccounts:" + s.Namespace, "system:authenticated"}, subject.Name)
	}
	return false
}
