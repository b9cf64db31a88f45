package policy

import (
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/prepull"
)

// Applies to: placeholder Deployments, and the PodDisruptionBudgets over their pods.
// Requires: one budget of maxUnavailable 0 over the pods that are not yet warm, and none over those that are.
// Why: among equal placeholders the scheduler evicts the one that started last, which is the one that is still pulling. It
// spares what a budget holds, unless there is nothing else.
var placeholderBudget = &Rule{
	ID:       "placeholder-budget",
	Summary:  "A PodDisruptionBudget with maxUnavailable 0 covers its pods that are not yet warm, and only these, so that preemption takes a warm one.",
	Fix:      "Give the budget maxUnavailable: 0 and the selector " + notYetWarm + " beside the placeholder's own labels.",
	Subject:  PlaceholderDeployment,
	Severity: SeverityWarning,
	audit:    auditBudgets,
}

const notYetWarm = "matchExpressions: [{key: " + prepull.WarmLabel + ", operator: DoesNotExist}]"

// budget is a PodDisruptionBudget with what it selects.
type budget struct {
	about
	*policyv1.PodDisruptionBudget
	selector labels.Selector
	// over are the placeholders of which it covers pods.
	over []*Object
}

func (b *budget) covers(o *Object, warm string) bool {
	pod := o.podLabels()
	delete(pod, prepull.WarmLabel) // a template that sets it is no proof
	if warm != "" {
		pod[prepull.WarmLabel] = warm
		for _, image := range prepull.Present(o.Spec) {
			pod[prepull.ImageLabel(image)] = "true"
		}
	}
	return b.about.Namespace == o.Namespace && b.selector.Matches(pod)
}

func auditBudgets(a *Audit) {
	facts := a.facts.Budgets
	if a.unread("PodDisruptionBudgets", facts) || len(a.Placeholders) == 0 {
		return
	}
	budgets := a.budgets()
	for _, o := range a.Placeholders {
		if reason := facts.ReasonIn(o.Namespace); reason != "" {
			o.notVerified(o.path.Child("metadata", "labels"), "PodDisruptionBudgets: %s", reason)
		} else {
			a.uncovered(o, budgets)
		}
	}
	for _, b := range budgets {
		a.judgeBudget(b)
	}
}

// budgets are those that cover pods of placeholders, or are meant to: they select by the warm label.
func (a *Audit) budgets() []*budget {
	var found []*budget
	for _, pdb := range a.facts.Budgets.All() {
		selector, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
		b := &budget{a.about("PodDisruptionBudget", pdb.Namespace, pdb.Name, ""), pdb, selector, nil}
		if err != nil {
			if slices.Contains(a.placeholderNamespaces(), pdb.Namespace) {
				b.notVerified(field.NewPath("spec", "selector"), "%s", clip(err.Error()))
			}
			continue
		}
		for _, o := range a.Placeholders {
			if b.covers(o, "") || b.covers(o, prepull.WarmTrue) || b.covers(o, prepull.WarmFailed) {
				b.over = append(b.over, o)
			}
		}
		if len(b.over) > 0 {
			b.pool = b.over[0].pool
		}
		requirements, _ := selector.Requirements()
		if len(b.over) > 0 || slices.ContainsFunc(requirements, func(r labels.Requirement) bool { return r.Key() == prepull.WarmLabel }) {
			found = append(found, b)
		}
	}
	return found
}

// uncovered reports that no budget holds the placeholder's pods that are not yet warm, or that several budgets want the same.
func (a *Audit) uncovered(o *Object, budgets []*budget) {
	path, facts := o.path.Child("metadata", "labels"), a.facts.Budgets
	holds := false
	for _, warm := range []string{"", prepull.WarmTrue, prepull.WarmFailed} {
		var names []string
		for _, b := range budgets {
			if b.covers(o, warm) {
				names = append(names, b.about.Name)
				holds = holds || warm == ""
			}
		}
		if len(names) > 1 {
			o.invalid(path, o.labelsText(), "%d PodDisruptionBudgets select the same pods (%s): the API server then refuses to evict any of them, and a drain never ends", len(names), clipped(names)).
				withFix("Keep the one with " + notYetWarm + " and maxUnavailable: 0, and delete or narrow the others.")
			return
		}
	}
	if holds {
		return
	}
	for _, key := range facts.AllMalformed() {
		if strings.HasPrefix(key, o.Namespace+"/") {
			o.notVerified(path, "PodDisruptionBudget %s: %s", key, facts.Malformed(key))
			return
		}
	}
	const consequence = "selects its pods that are not yet warm: a Workspace that preempts takes the placeholder that started last, which is still pulling"
	o.required(path, "no PodDisruptionBudget of namespace %s %s", o.Namespace, consequence).
		orElsewhere(facts, "no PodDisruptionBudget of namespace %s among these files %s", o.Namespace, consequence).
		withFix("Add a PodDisruptionBudget in namespace %s with spec: {maxUnavailable: 0, selector: {%s%s}}.", o.Namespace, matchLabels(o), notYetWarm)
}

// matchLabels writes down what selects the placeholder's pods; empty where its own selector is not that simple.
func matchLabels(o *Object) string {
	selector := o.Deployment.Spec.Selector
	if selector == nil || len(selector.MatchLabels) == 0 || len(selector.MatchExpressions) > 0 {
		return ""
	}
	pairs := strings.NewReplacer("=", ": ", ",", ", ").Replace(labels.Set(selector.MatchLabels).String())
	return clip("matchLabels: {"+pairs+"}") + ", "
}

// judgeBudget finds what is wrong with a budget that covers, or is meant to cover, pods of placeholders.
func (a *Audit) judgeBudget(b *budget) {
	path, selects := field.NewPath("spec", "selector"), clip(b.selector.String())
	if len(b.over) == 0 {
		in := clipped(a.placeholderNamespaces())
		b.invalid(path, selects, "selects no placeholder's pods in namespace %s; a budget counts in its own namespace only, and placeholders are in %s", b.about.Namespace, in).
			withFix("Write the labels of the placeholder's pod template, and its namespace, into the budget; or delete it.").
			orElsewhere(a.facts.Deployments, "no placeholder among these files has pods in namespace %s that it selects; placeholders are in %s", b.about.Namespace, in)
		return
	}
	holds := false
	for _, o := range b.over {
		holds = holds || b.covers(o, "")
		switch {
		case b.covers(o, prepull.WarmTrue):
			b.invalid(path, selects, "selects warm pods of Deployment %s too: preemption spares them and takes one that is still pulling, and a drain of their nodes can wait permanently", o.Name)
		case b.covers(o, prepull.WarmFailed):
			b.invalid(path, selects, "selects pods of Deployment %s whose pull has failed: a drain of their nodes can wait permanently", o.Name)
		}
	}
	for _, d := range a.facts.Deployments.Prefix(b.about.Namespace + "/") {
		pod := d.Spec.Template.Labels
		other := len(pod) > 0 && !slices.ContainsFunc(a.Placeholders, func(o *Object) bool { return o.Namespace == d.Namespace && o.Name == d.Name })
		if other && b.selector.Matches(labels.Set(pod)) {
			b.invalid(path, selects, "selects pods of Deployment %s too, which is no placeholder: a drain of their nodes can wait permanently", d.Name).
				withFix("Add the labels of the placeholder's pod template to the budget's selector.")
		}
	}
	if holds {
		b.judgeAllowance()
	}
}

// judgeAllowance finds that a budget gives up pods: of the replicas of all that it covers, what is not to be available.
func (b *budget) judgeAllowance() {
	const fix = "Set maxUnavailable: 0, and no minAvailable."
	path := field.NewPath("spec", "maxUnavailable")
	most, least := b.Spec.MaxUnavailable, b.Spec.MinAvailable
	replicas := 0
	for _, o := range b.over {
		replicas += max(int(ReplicasOf(o.Deployment)), 0)
	}
	value := most
	if most == nil {
		path, value = field.NewPath("spec", "minAvailable"), least
	}
	if value == nil {
		b.required(field.NewPath("spec", "maxUnavailable"), "neither maxUnavailable nor minAvailable is set, so that it holds no pod").withFix(fix)
		return
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(value, replicas, true)
	if most == nil {
		n = replicas - n
	}
	switch {
	case err != nil:
		b.invalid(path, clip(value.String()), "is neither a number nor a percentage").withFix(fix)
	case most != nil && least != nil:
		b.invalid(path, clip(value.String()), "beside minAvailable %s: the API server takes one of them only", clip(least.String())).withFix(fix)
	case most != nil && isZero(*most), most == nil && least.String() == "100%":
	default:
		b.invalid(path, clip(value.String()), "gives up %d of the %d placeholders that it covers, once they run; only maxUnavailable 0 holds each that is not yet warm, however many there are",
			min(max(n, 0), replicas), replicas).withFix(fix)
	}
}
