package policy

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
)

// Applies to: Workspace pods.
// Requires: a priority above the placeholders', and the right to preempt.
// Why: else the pod cannot take a placeholder's place, and waits for a cold node beside warm ones.
var workspacePriority = &Rule{
	ID:       "workspace-priority",
	Summary:  "Its priority is above the placeholders' and its preemptionPolicy is not Never; else it cannot take a warm node.",
	Fix:      "Give Workspaces no PriorityClass, or one above the placeholders' that preempts.",
	Subject:  WorkspacePod,
	Action:   config.Warn,
	Severity: SeverityError,
	check:    checkWorkspacePriority,
}

func checkWorkspacePriority(o *Object) []Finding {
	if o.Pool == nil {
		return nil
	}
	path := func() *field.Path { return o.specPath("priorityClassName") }
	priority, policy, problem := podPriority(o)
	if problem != "" {
		return []Finding{notVerified(path(), problem).atMostAudit()}
	}
	var findings []Finding
	placeholder := o.facts.PriorityClasses.Get(o.config.Placeholders.PriorityClassName)
	switch {
	case placeholder == nil:
		findings = append(findings, notVerified(path(), fmt.Sprintf("PriorityClass %s of the placeholders is not known", o.config.Placeholders.PriorityClassName)).atMostAudit())
	case priority <= placeholder.Value:
		findings = append(findings, invalid(path(), o.Spec.PriorityClassName,
			fmt.Sprintf("priority %d is not above the placeholders' %d: it cannot take the place of one", priority, placeholder.Value)).withKey("priority"))
	}
	if policy == corev1.PreemptNever {
		findings = append(findings, invalid(path(), o.Spec.PriorityClassName, "preemptionPolicy Never: it cannot take the place of a placeholder").withKey("preemption policy"))
	}
	return findings
}

// podPriority is the pod's priority and preemption policy: as the API server has set them, else as it would.
func podPriority(o *Object) (priority int32, policy corev1.PreemptionPolicy, problem string) {
	classes, name := o.facts.PriorityClasses, o.Spec.PriorityClassName
	class := defaultPriorityClass(o)
	if name != "" {
		class = classes.Get(name)
	}
	switch {
	case o.Spec.Priority != nil:
	case !classes.Known():
		return 0, "", "PriorityClasses: " + classes.Reason()
	case name != "" && class == nil:
		return 0, "", fmt.Sprintf("PriorityClass %s is not known", name)
	}
	policy = corev1.PreemptLowerPriority
	if class != nil {
		priority = class.Value
		policy = *cmp.Or(class.PreemptionPolicy, &policy)
	}
	return *cmp.Or(o.Spec.Priority, &priority), *cmp.Or(o.Spec.PreemptionPolicy, &policy), ""
}
