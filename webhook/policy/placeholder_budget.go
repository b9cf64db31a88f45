package policy

import (
	"fmt"
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/prepull"
)

// Applies to: placeholder Deployments, and the PodDisruptionBudgets over their pods.
// Requires: one budget of maxUnavailable 0 over the pods that are not yet warm, and none over those that are.
// Why: among equal placeholders the scheduler evicts the one that started last, which is the one that is still pulling. It
// spares what a budget holds, unless there is nothing else.
var placeholderBudget = &Rule{
	ID:        "placeholder-budget",
	Summary:   "A PodDisruptionBudget with maxUnavailable 0 covers its pods that are not yet warm, and only these, so that preemption takes a warm one.",
	Fix:       "Give the budget maxUnavailable: 0 and the selector " + notYetWarm + " beside the placeholder's own labels.",
	Subject:   PlaceholderDeployment,
	Action:    config.Audit,
	Severity:  SeverityWarning,
	AuditOnly: true,
	around:    checkBudgets,
}

const notYetWarm = "matchExpressions: [{key: " + prepull.WarmLabel + ", operator: DoesNotExist}]"

// budget is a PodDisruptionBudget with what it selects.
type budget struct {
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
	return b.Namespace == o.Namespace && b.selector.Matches(pod)
}

func checkBudgets(a *Audit) []Finding {
	findings := unread("PodDisruptionBudgets", a.facts.Budgets)
	if len(findings) > 0 || len(a.placeholders) == 0 {
		return findings
	}
	budgets, unreadable := a.budgets()
	for _, o := range a.placeholders {
		if reason := a.facts.Budgets.ReasonIn(o.Namespace); reason != "" {
			f := notVerified(field.NewPath("spec", "template", "metadata", "labels"), "PodDisruptionBudgets: "+reason)
			findings = append(findings, f.about("Deployment", o.Namespace, o.Name, o.PoolName()))
		} else if f, found := a.uncovered(o, budgets); found {
			findings = append(findings, f.about("Deployment", o.Namespace, o.Name, o.PoolName()))
		}
	}
	findings = append(findings, unreadable...)
	for _, b := range budgets {
		pool := ""
		if len(b.over) > 0 {
			pool = b.over[0].PoolName()
		}
		for _, f := range a.judgeBudget(b) {
			findings = append(findings, f.about("PodDisruptionBudget", b.Namespace, b.Name, pool))
		}
	}
	return findings
}

// budgets are those that cover pods of placeholders, or are meant to: they select by the warm label.
func (a *Audit) budgets() (found []*budget, unreadable []Finding) {
	for _, pdb := range a.facts.Budgets.All() {
		selector, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
		if err != nil {
			if slices.ContainsFunc(a.placeholders, func(o *Object) bool { return o.Namespace == pdb.Namespace }) {
				unreadable = append(unreadable, notVerified(field.NewPath("spec", "selector"), clip(err.Error())).about("PodDisruptionBudget", pdb.Namespace, pdb.Name, ""))
			}
			continue
		}
		b := &budget{PodDisruptionBudget: pdb, selector: selector}
		for _, o := range a.placeholders {
			if b.covers(o, "") || b.covers(o, prepull.WarmTrue) || b.covers(o, prepull.WarmFailed) {
				b.over = append(b.over, o)
			}
		}
		requirements, _ := selector.Requirements()
		if len(b.over) > 0 || slices.ContainsFunc(requirements, func(r labels.Requirement) bool { return r.Key() == prepull.WarmLabel }) {
			found = append(found, b)
		}
	}
	return found, unreadable
}

// uncovered finds the placeholder whose pods that are not yet warm no budget holds, or that several budgets want.
func (a *Audit) uncovered(o *Object, budgets []*budget) (Finding, bool) {
	path := field.NewPath("spec", "template", "metadata", "labels")
	holds := false
	for _, warm := range []string{"", prepull.WarmTrue, prepull.WarmFailed} {
		var names []string
		for _, b := range budgets {
			if b.covers(o, warm) {
				names = append(names, b.Name)
				holds = holds || warm == ""
			}
		}
		if len(names) > 1 {
			return invalid(path, o.labelsText(), fmt.Sprintf("%d PodDisruptionBudgets select the same pods (%s): the API server then refuses to evict any of them, and a drain never ends",
				len(names), clip(strings.Join(names, ", ")))).withFix("Keep the one with " + notYetWarm + " and maxUnavailable: 0, and delete or narrow the others."), true
		}
	}
	if holds {
		return Finding{}, false
	}
	if reasons := malformedOf(a.facts.Budgets, o.Namespace+"/"); len(reasons) > 0 {
		return notVerified(path, "PodDisruptionBudget "+reasons[0]), true
	}
	const consequence = "selects its pods that are not yet warm: a Workspace that preempts takes the placeholder that started last, which is still pulling"
	fix := fmt.Sprintf("Add a PodDisruptionBudget in namespace %s with spec: {maxUnavailable: 0, selector: {%s%s}}.", o.Namespace, matchLabels(o), notYetWarm)
	f := required(path, "no PodDisruptionBudget of namespace "+o.Namespace+" "+consequence)
	return orElsewhere(f, a.facts.Budgets, "no PodDisruptionBudget of namespace "+o.Namespace+" among these files "+consequence).withFix(fix), true
}

// matchLabels writes down what selects the placeholder's pods; empty where its own selector is not that simple.
func matchLabels(o *Object) string {
	selector := o.Deployment.Spec.Selector
	if selector == nil || len(selector.MatchLabels) == 0 || len(selector.MatchExpressions) > 0 {
		return ""
	}
	text := strings.ReplaceAll(strings.ReplaceAll(labels.Set(selector.MatchLabels).String(), "=", ": "), ",", ", ")
	return clip("matchLabels: {"+text+"}") + ", "
}

// judgeBudget finds what is wrong with a budget that covers, or is meant to cover, pods of placeholders.
func (a *Audit) judgeBudget(b *budget) []Finding {
	path := field.NewPath("spec", "selector")
	text := clip(b.selector.String())
	if len(b.over) == 0 {
		f := invalid(path, text, "selects no placeholder's pods in namespace "+b.Namespace+"; a budget counts in its own namespace only, and placeholders are in "+a.placeholderNamespaces()).
			withFix("Write the labels of the placeholder's pod template, and its namespace, into the budget; or delete it.")
		return []Finding{orElsewhere(f, a.facts.Deployments, "no placeholder among these files has pods in namespace "+b.Namespace+" that it selects; placeholders are in "+a.placeholderNamespaces())}
	}
	var findings []Finding
	holds := false
	for _, o := range b.over {
		holds = holds || b.covers(o, "")
		switch {
		case b.covers(o, prepull.WarmTrue):
			findings = append(findings, invalid(path, text, "selects warm pods of Deployment "+o.Name+" too: preemption spares them and takes one that is still pulling, and a drain of their nodes can wait permanently"))
		case b.covers(o, prepull.WarmFailed):
			findings = append(findings, invalid(path, text, "selects pods of Deployment "+o.Name+" whose pull has failed: a drain of their nodes can wait permanently"))
		}
	}
	for _, d := range a.facts.Deployments.All() {
		pod := d.Spec.Template.Labels
		other := d.Namespace == b.Namespace && len(pod) > 0 && !slices.ContainsFunc(a.placeholders, func(o *Object) bool { return o.Namespace == d.Namespace && o.Name == d.Name })
		if other && b.selector.Matches(labels.Set(pod)) {
			findings = append(findings, invalid(path, text, "selects pods of Deployment "+d.Name+" too, which is no placeholder: a drain of their nodes can wait permanently").
				withFix("Add the labels of the placeholder's pod template to the budget's selector."))
		}
	}
	if f, found := giving(b); found && holds {
		findings = append(findings, f)
	}
	return findings
}

func (a *Audit) placeholderNamespaces() string {
	var names []string
	for _, o := range a.placeholders {
		names = append(names, o.Namespace)
	}
	slices.Sort(names)
	return clip(strings.Join(slices.Compact(names), ", "))
}

// giving finds the budget that gives up pods: of the replicas of all that it covers, what is not to be available.
func giving(b *budget) (Finding, bool) {
	path := field.NewPath("spec", "maxUnavailable")
	most, least := b.Spec.MaxUnavailable, b.Spec.MinAvailable
	replicas := 0
	for _, o := range b.over {
		replicas += max(int(replicasOf(o.Deployment)), 0)
	}
	value := most
	if most == nil {
		path, value = field.NewPath("spec", "minAvailable"), least
	}
	const fix = "Set maxUnavailable: 0, and no minAvailable."
	if value == nil {
		return required(field.NewPath("spec", "maxUnavailable"), "neither maxUnavailable nor minAvailable is set, so that it holds no pod").withFix(fix), true
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(value, replicas, true)
	switch {
	case err != nil:
		return invalid(path, clip(value.String()), "is neither a number nor a percentage").withFix(fix), true
	case most != nil && least != nil:
		return invalid(path, clip(value.String()), "beside minAvailable "+clip(least.String())+": the API server takes one of them only").withFix(fix), true
	case most != nil && isZero(*most), most == nil && least.String() == "100%":
		return Finding{}, false
	case most == nil:
		n = replicas - n
	}
	return invalid(path, clip(value.String()), fmt.Sprintf("gives up %d of the %d placeholders that it covers, once they run; only maxUnavailable 0 holds each that is not yet warm, however many there are",
		min(max(n, 0), replicas), replicas)).withFix(fix), true
}
