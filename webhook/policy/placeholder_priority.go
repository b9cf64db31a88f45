package policy

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

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
	Summary:  "The PriorityClass exists, is negative and below every Workspace's, above -33,554,432 (below it Karpenter 1.14 and later take the node for empty), and never preempts; the template does not contradict it.",
	Fix:      "Use a PriorityClass such as the shipped overprovisioning-placeholder (value -1000, preemptionPolicy Never).",
	Subject:  PlaceholderDeployment,
	Fills:    "priorityClassName",
	Action:   config.Deny,
	Severity: SeverityError,
	check:    checkPriority,
	mutate: func(o *Object, patch *placement.Patch) {
		if o.Spec.PriorityClassName == "" {
			o.Spec.PriorityClassName = o.config.Placeholders.PriorityClassName
			patch.Add(o.specPointer()+"/priorityClassName", o.Spec.PriorityClassName)
		}
	},
}

// emptyNodePriority is where Karpenter's eviction cost reaches 0: at or below it a node counts as empty.
const emptyNodePriority = -33_554_432

func checkPriority(o *Object) []Finding {
	path := o.specPath("priorityClassName")
	name := o.Spec.PriorityClassName
	if name == "" {
		return []Finding{required(path, fmt.Sprintf("without a PriorityClass the placeholder has the priority of a Workspace; needs %q", o.config.Placeholders.PriorityClassName)).withKey("absent")}
	}
	classes := o.facts.PriorityClasses
	if !classes.Known() {
		return []Finding{notVerified(path, "PriorityClasses: "+classes.Reason())}
	}
	class := classes.Get(name)
	switch reason := classes.Malformed(name); {
	case class == nil && reason != "":
		return []Finding{notVerified(path, fmt.Sprintf("PriorityClass %s: %s", name, reason))}
	case class == nil:
		const consequence = "no pod of the placeholder could be created"
		f := invalid(path, name, fmt.Sprintf("PriorityClass %s does not exist: %s", name, consequence)).withKey("does not exist")
		return []Finding{orElsewhere(f, classes, fmt.Sprintf("PriorityClass %s is not among these files: without it %s", name, consequence))}
	}
	findings := append(contradictions(o, class), checkPriorityValue(path, class, defaultPriority(o))...)
	if class.PreemptionPolicy == nil || *class.PreemptionPolicy != corev1.PreemptNever {
		findings = append(findings, invalid(path, name,
			fmt.Sprintf("PriorityClass %s does not have preemptionPolicy Never: placeholders would evict pods of lower priority", name)).withKey("preemptionPolicy"))
	}
	return findings
}

// contradictions are what the template sets otherwise than its class, which the API server refuses in every pod.
func contradictions(o *Object, class *schedulingv1.PriorityClass) []Finding {
	const refused = "the API server refuses every pod whose %s is not that of its PriorityClass: %s has %v"
	var findings []Finding
	if priority := o.Spec.Priority; priority != nil && *priority != class.Value {
		findings = append(findings, invalid(o.specPath("priority"), *priority, fmt.Sprintf(refused, "priority", class.Name, class.Value)).
			withFix("Remove priority from the pod template: the class gives it."))
	}
	policy := corev1.PreemptLowerPriority
	if class.PreemptionPolicy != nil {
		policy = *class.PreemptionPolicy
	}
	if own := o.Spec.PreemptionPolicy; own != nil && *own != policy {
		findings = append(findings, invalid(o.specPath("preemptionPolicy"), string(*own), fmt.Sprintf(refused, "preemptionPolicy", class.Name, policy)).
			withFix("Remove preemptionPolicy from the pod template: the class gives it."))
	}
	return findings
}

func checkPriorityValue(path *field.Path, class *schedulingv1.PriorityClass, workspaces int32) []Finding {
	const tooHigh = "value too high"
	var f Finding
	switch value := class.Value; {
	case value <= emptyNodePriority:
		f = invalid(path, class.Name, fmt.Sprintf("PriorityClass %s has value %d, not above %d: Karpenter takes the node for empty and removes it", class.Name, value, emptyNodePriority)).
			withKey("value too low")
	case value >= workspaces:
		f = invalid(path, class.Name, fmt.Sprintf("PriorityClass %s has value %d, not below the Workspaces' %d: none could take the placeholder's place", class.Name, value, workspaces)).
			withKey(tooHigh)
		f.amount = int64(value)
	case value >= 0:
		f = invalid(path, class.Name, fmt.Sprintf("PriorityClass %s has value %d, not below 0: pods of priority 0 could not take the placeholder's place", class.Name, value)).
			withKey(tooHigh)
		f.amount = int64(value)
	default:
		return nil
	}
	return []Finding{f}
}

// defaultPriority is the priority of pods that name no class, as Workspaces' do: the global default class's, else 0.
func defaultPriority(o *Object) int32 {
	if class := defaultPriorityClass(o); class != nil {
		return class.Value
	}
	return 0
}

// defaultPriorityClass is the class of pods that name none; nil without one.
func defaultPriorityClass(o *Object) *schedulingv1.PriorityClass {
	var global *schedulingv1.PriorityClass
	for _, class := range o.facts.PriorityClasses.All() {
		// Of several, which a race can leave, the API server takes the lowest.
		if class.GlobalDefault && (global == nil || class.Value < global.Value) {
			global = class
		}
	}
	return global
}
