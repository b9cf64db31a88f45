package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
)

// TemplateNamespaceLabel and templateNameLabel are the labels by which the Workspace controller says which template a pod
// comes from.
const (
	templateNameLabel      = "workspace.jupyter.org/template-name"
	TemplateNamespaceLabel = "workspace.jupyter.org/template-namespace"
)

// TemplateLabels are the labels of a Workspace's pod that tell its template, beside others.
func TemplateLabels(others map[string]string, namespace, name string) map[string]string {
	labels := maps.Clone(others)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[TemplateNamespaceLabel], labels[templateNameLabel] = namespace, name
	return labels
}

// Choice is the pool of an object, or why it has none.
type Choice struct {
	// Pool is nil when there is none.
	Pool *Pool
	// Accelerators are what the object asks for, sorted.
	Accelerators []string
	// Several are the pools that a placeholder could belong to, where more than one claims it; it has none then.
	Several []*Pool
	// Problem says why there is no pool, or what was asked for and not followed; empty when all is well.
	Problem string
	// Barred tells that there is no pool because the pod's namespace may not use it, Unknown that no one knows whether it may.
	Barred, Unknown bool
	// ByTemplate tells that the Problem is the pod's template, not its pool label.
	ByTemplate bool
}

// ForPod chooses the pool of a Workspace pod: among the pools that offer exactly the accelerators it asks for, the one
// that its label names, else the one that lists its template (see byTemplate), else the first.
func (p *Pools) ForPod(labels map[string]string, spec *corev1.PodSpec) Choice {
	choice := Choice{Accelerators: p.Accelerators(spec)}
	candidates := p.offering(choice.Accelerators)
	if label, ok := labels[PoolLabel]; ok {
		i := slices.IndexFunc(candidates, func(c *Pool) bool { return c.Config.Name == label })
		if i >= 0 {
			choice.Pool = candidates[i]
			return choice
		}
		choice.Problem = p.labelProblem(label, choice.Accelerators)
	}
	if len(candidates) == 0 {
		choice.Problem = "no pool " + offering(choice.Accelerators)
		return choice
	}
	choice.Pool = candidates[0]
	pool, problem := p.byTemplate(candidates, config.TemplateRef{Namespace: labels[TemplateNamespaceLabel], Name: labels[templateNameLabel]})
	if pool != nil {
		choice.Pool = pool
	}
	if choice.Problem == "" {
		choice.Problem, choice.ByTemplate = problem, problem != ""
	}
	return choice
}

func (p *Pools) labelProblem(label string, accelerators []string) string {
	if p.byName[label] == nil {
		return fmt.Sprintf("label %s names pool %q, which is not configured", PoolLabel, label)
	}
	if len(accelerators) == 0 {
		return fmt.Sprintf("label %s names pool %q, whose nodes have accelerators", PoolLabel, label)
	}
	return fmt.Sprintf("label %s names pool %q, which does not offer %s", PoolLabel, label, strings.Join(accelerators, " and "))
}

func (p *Pools) offering(accelerators []string) []*Pool {
	var candidates []*Pool
	for _, pool := range p.list {
		if pool.Offers(accelerators) {
			candidates = append(candidates, pool)
		}
	}
	return candidates
}

// offering completes "a pool that …".
func offering(accelerators []string) string {
	if len(accelerators) == 0 {
		return "is without accelerators"
	}
	return "offers " + strings.Join(accelerators, " and ")
}

// ForPlaceholder chooses the pool of a placeholder Deployment: the one that its label names, whatever else it says;
// else the one that its node selection names by the pool's label or by instance types; else the only one that offers
// its accelerators.
func (p *Pools) ForPlaceholder(d *appsv1.Deployment) Choice {
	spec := &d.Spec.Template.Spec
	choice := Choice{Accelerators: p.Accelerators(spec)}
	if label, ok := poolLabel(d); ok {
		choice.Pool = p.byName[label]
		if choice.Pool == nil {
			choice.Problem = fmt.Sprintf("label %s names pool %q, which is not configured (pools: %s)", PoolLabel, label, names(p.list))
		}
		return choice
	}
	named := p.Named(spec)
	if len(named) == 0 {
		named = p.offering(choice.Accelerators)
	} else if both := intersect(named, p.offering(choice.Accelerators)); len(both) > 0 {
		named = both
	}
	switch len(named) {
	case 0:
		choice.Problem = "no pool " + offering(choice.Accelerators) + ", and none is named"
	case 1:
		choice.Pool = named[0]
	default:
		choice.Several = named
		choice.Problem = fmt.Sprintf("it could belong to any of the pools %s", names(named))
	}
	return choice
}

func poolLabel(d *appsv1.Deployment) (string, bool) {
	if label, ok := d.Labels[PoolLabel]; ok {
		return label, true
	}
	label, ok := d.Spec.Template.Labels[PoolLabel]
	return label, ok
}

// Named are the pools that the node selection names: by the pool's label, required or preferred, else by instance type.
func (p *Pools) Named(spec *corev1.PodSpec) []*Pool {
	asked := nodeRequirements(spec)
	namedBy := func(key func(*Pool) string, values func(*Pool) []string) []*Pool {
		var named []*Pool
		for _, pool := range p.list {
			if slices.ContainsFunc(asked, func(r corev1.NodeSelectorRequirement) bool {
				return NormalKey(r.Key) == NormalKey(key(pool)) && r.Operator == corev1.NodeSelectorOpIn && overlap(r.Values, values(pool))
			}) {
				named = append(named, pool)
			}
		}
		return named
	}
	named := namedBy(func(pool *Pool) string { return pool.Requirement.Key }, func(pool *Pool) []string { return pool.Requirement.Values })
	if len(named) > 0 {
		return named
	}
	return namedBy(func(*Pool) string { return corev1.LabelInstanceTypeStable }, func(pool *Pool) []string { types, _ := pool.InstanceTypes(); return types })
}

// nodeRequirements are all requirements on node labels that a spec mentions anywhere.
func nodeRequirements(spec *corev1.PodSpec) []corev1.NodeSelectorRequirement {
	requirements := selectorRequirements(spec.NodeSelector)
	if required := cluster.RequiredNodes(spec); required != nil {
		for _, term := range required.NodeSelectorTerms {
			requirements = append(requirements, term.MatchExpressions...)
		}
	}
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		for _, preferred := range spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			requirements = append(requirements, preferred.Preference.MatchExpressions...)
		}
	}
	return requirements
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

func intersect(a, b []*Pool) []*Pool {
	return slices.DeleteFunc(slices.Clone(a), func(pool *Pool) bool { return !slices.Contains(b, pool) })
}

func names(pools []*Pool) string {
	list := make([]string, 0, len(pools))
	for _, pool := range pools {
		list = append(list, pool.Config.Name)
	}
	return strings.Join(list, ", ")
}

func selectorRequirements(selector map[string]string) []corev1.NodeSelectorRequirement {
	if len(selector) == 0 {
		return nil
	}
	requirements := make([]corev1.NodeSelectorRequirement, 0, len(selector))
	for key, value := range selector {
		requirements = append(requirements, in(key, value))
	}
	slices.SortFunc(requirements, func(a, b corev1.NodeSelectorRequirement) int { return strings.Compare(a.Key, b.Key) })
	return requirements
}
