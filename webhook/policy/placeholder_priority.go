package policy

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/utils/ptr"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Applies to: placeholder Deployments.
// Requires: a PriorityClass that exists, below every Workspace, above Karpenter's cut-off, that never preempts; a template
// that sets no other priority or preemptionPolicy than the class.
// Why: a placeholder that is not below Workspaces never makes room for them; one that is too low counts as an empty
// node for Karpenter 1.14 and later; a missing or contradicted class means no pods at all.
var placeholderPriority = &Rule{
	ID:       "placeholder-priority",
	Summary:  "The PriorityClass exists, is negative and below every Workspace's, above -33,554,432 (at or below it Karpenter 1.14 and later treats the node as empty), and never preempts; the template does not contradict it.",
	Fix:      "Use a PriorityClass such as the shipped overprovisioning-placeholder (value -1000, preemptionPolicy Never).",
	Subject:  PlaceholderDeployment,
	Fills:    "priorityClassName",
	Action:   config.Deny,
	Severity: SeverityError,
	check:    checkPriority,
	mutate: func(o *Object, patch *placement.Patch) {
		if o.Spec.PriorityClassName == "" {
			o.Spec.PriorityClassName = o.e.config.Placeholders.PriorityClassName
			patch.Add(o.specPointer()+"/priorityClassName", o.Spec.PriorityClassName)
		}
	},
}

func checkPriority(o *Object) {
	path, name := o.specPath("priorityClassName"), o.Spec.PriorityClassName
	if name == "" {
		o.required(path, "without a PriorityClass the placeholder has the priority of a Workspace; needs %q", o.e.config.Placeholders.PriorityClassName).withKey("absent")
		return
	}
	classes := o.e.facts.PriorityClasses
	class := classes.Get(name)
	if why := classes.Unreadable("PriorityClasses", "PriorityClass "+name, name); why != "" {
		o.notVerified(path, "%s", why)
		return
	}
	if class == nil {
		const consequence = "no pod of the placeholder could be created"
		o.invalid(path, name, "PriorityClass %s does not exist: %s", name, consequence).withKey("does not exist").
			orElsewhere(classes, "PriorityClass %s is not among these files: without it %s", name, consequence)
		return
	}
	contradictions(o, class)
	switch value, workspaces := class.Value, o.e.defaultPriority(); {
	case value <= emptyNodePriority:
		o.invalid(path, name, "PriorityClass %s has value %d, not above %d: Karpenter treats the node as empty and removes it", name, value, emptyNodePriority).
			withKey("value too low")
	case value >= workspaces:
		o.invalid(path, name, "PriorityClass %s has value %d, not below the Workspaces' %d: no Workspace could preempt the placeholder", name, value, workspaces).
			withKey("value too high").withAmount(int64(value))
	case value >= 0:
		o.invalid(path, name, "PriorityClass %s has value %d, not below 0: pods of priority 0 could not preempt the placeholder", name, value).
			withKey("value too high").withAmount(int64(value))
	}
	if class.PreemptionPolicy == nil || *class.PreemptionPolicy != corev1.PreemptNever {
		o.invalid(path, name, "PriorityClass %s does not have preemptionPolicy Never: placeholders would evict pods of lower priority", name).withKey("preemptionPolicy")
	}
}

// contradictions are what the template sets otherwise than its class, which the API server refuses in every pod.
func contradictions(o *Object, class *schedulingv1.PriorityClass) {
	const refused = "the API server refuses every pod whose %s is not that of its PriorityClass: %s has %v"
	if priority := o.Spec.Priority; priority != nil && *priority != class.Value {
		o.invalid(o.specPath("priority"), *priority, refused, "priority", class.Name, class.Value).
			withFix("Remove priority from the pod template: the class gives it.")
	}
	policy := ptr.Deref(class.PreemptionPolicy, corev1.PreemptLowerPriority)
	if own := o.Spec.PreemptionPolicy; own != nil && *own != policy {
		o.invalid(o.specPath("preemptionPolicy"), string(*own), refused, "preemptionPolicy", class.Name, policy).
			withFix("Remove preemptionPolicy from the pod template: the class gives it.")
	}
}
