package policy

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

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

func checkWorkspacePriority(o *Object) {
	if o.Pool == nil {
		return
	}
	path := func() *field.Path { return o.specPath("priorityClassName") }
	priority, policy, problem := podPriority(o)
	if problem != "" {
		o.notVerified(path(), "%s", problem).atMostAudit()
		return
	}
	name := o.e.config.Placeholders.PriorityClassName
	switch placeholder := o.e.facts.PriorityClasses.Get(name); {
	case placeholder == nil:
		o.notVerified(path(), "PriorityClass %s of the placeholders is not known", name).atMostAudit()
	case priority <= placeholder.Value:
		o.invalid(path(), o.Spec.PriorityClassName, "priority %d is not above the placeholders' %d: it cannot preempt one", priority, placeholder.Value).withKey("priority")
	}
	if policy == corev1.PreemptNever {
		o.invalid(path(), o.Spec.PriorityClassName, "preemptionPolicy Never: it cannot preempt a placeholder").withKey("preemption policy")
	}
}

// podPriority is the pod's priority and preemption policy: as the API server has set them, else as it would.
func podPriority(o *Object) (priority int32, policy corev1.PreemptionPolicy, problem string) {
	classes, name := o.e.facts.PriorityClasses, o.Spec.PriorityClassName
	class := o.e.defaultPriorityClass()
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
		priority, policy = class.Value, ptr.Deref(class.PreemptionPolicy, policy)
	}
	return ptr.Deref(o.Spec.Priority, priority), ptr.Deref(o.Spec.PreemptionPolicy, policy), ""
}
