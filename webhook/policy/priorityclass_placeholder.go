package policy

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
)

// Applies to: the PriorityClass that is configured for placeholders, and others that placeholders name.
// Requires: it exists, with a negative value above Karpenter's cut-off, preemptionPolicy Never, and is not the global
// default; running placeholders have its value.
// Why: value and preemptionPolicy cannot be changed, and pods keep the number that they were created with: what is wrong
// here stays wrong until somebody makes another class.
var priorityClassPlaceholder = &Rule{
	ID:        "priorityclass-placeholder",
	Summary:   "The placeholders' PriorityClass exists, has a negative value above -33,554,432 and preemptionPolicy Never, and is not the global default.",
	Fix:       immutableFix,
	Subject:   PriorityClass,
	Action:    config.Audit,
	Severity:  SeverityError,
	AuditOnly: true,
	around:    checkPriorityClasses,
}

const immutableFix = "Create a class under a new name (value -1000, preemptionPolicy Never) and name it in placeholders.priorityClassName, or delete and recreate this one and restart the placeholders: the field is immutable, and running pods keep their number."

func checkPriorityClasses(a *Audit) []Finding {
	classes := a.facts.PriorityClasses
	if unread := unread("PriorityClasses", classes); unread != nil {
		return unread
	}
	names := map[string]bool{a.config.Placeholders.PriorityClassName: true}
	for _, o := range a.placeholders {
		if o.Spec.PriorityClassName != "" {
			names[o.Spec.PriorityClassName] = true
		}
	}
	var findings []Finding
	for _, name := range slices.Sorted(maps.Keys(names)) {
		var found []Finding
		switch class, malformed := classes.Get(name), classes.Malformed(name); {
		case class == nil && malformed != "":
			found = append(variantClasses(a, name), notVerified(field.NewPath("value"), malformed))
		case class == nil:
			f := invalid(field.NewPath("metadata", "name"), name, "the PriorityClass does not exist: no pod of a placeholder that names it is created").
				withFix("Create it (value -1000, preemptionPolicy Never), or correct placeholders.priorityClassName in the configuration and the placeholders.")
			found = []Finding{orElsewhere(f, classes, "the PriorityClass is not among these files: without it no pod of a placeholder that names it is created")}
		default:
			found = append(priorityClassFindings(class), oldPriorities(a, class)...)
		}
		for _, f := range found {
			findings = append(findings, f.about("PriorityClass", "", name, "").in(f.Object.Definition))
		}
	}
	return findings
}

// variantClasses judges each definition of a class that has several.
func variantClasses(a *Audit, name string) []Finding {
	var findings []Finding
	for i, class := range a.facts.PriorityClasses.Variants(name) {
		for _, f := range priorityClassFindings(class) {
			findings = append(findings, f.in(i+1))
		}
	}
	return findings
}

func priorityClassFindings(class *schedulingv1.PriorityClass) []Finding {
	var findings []Finding
	value := field.NewPath("value")
	switch {
	case class.Value >= 0:
		findings = append(findings, invalid(value, class.Value, "not below 0, the priority of Workspaces: none could take a placeholder's place"))
	case class.Value <= emptyNodePriority:
		findings = append(findings, invalid(value, class.Value, fmt.Sprintf("not above %d: Karpenter takes a node with such pods for empty and removes it", emptyNodePriority)))
	}
	if class.GlobalDefault {
		findings = append(findings, invalid(field.NewPath("globalDefault"), true, "every new pod of the cluster that names no class gets a placeholder's priority, Workspaces too").
			withFix("Set globalDefault: false, and recreate the pods that were created meanwhile: they keep their number."))
	}
	path := field.NewPath("preemptionPolicy")
	const preempts = "placeholders would evict pods of lower priority to get a node"
	switch {
	case class.PreemptionPolicy == nil:
		findings = append(findings, required(path, "the API server's default is PreemptLowerPriority: "+preempts))
	case *class.PreemptionPolicy != corev1.PreemptNever:
		findings = append(findings, invalid(path, string(*class.PreemptionPolicy), "is not Never: "+preempts))
	}
	return findings
}

// oldPriorities looks for pods that were created while the class, since recreated, had another value.
func oldPriorities(a *Audit, class *schedulingv1.PriorityClass) []Finding {
	var names []string
	var had int32
	for _, o := range a.placeholders {
		for _, pod := range a.pods(o) {
			if pod.Spec.PriorityClassName == class.Name && pod.Spec.Priority != nil && *pod.Spec.Priority != class.Value {
				names = append(names, pod.Namespace+"/"+pod.Name)
				had = *pod.Spec.Priority
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	message := fmt.Sprintf("%d placeholder pods were created when the class had another value (such as %d), and keep it: %s", len(names), had, some(names))
	return []Finding{invalid(field.NewPath("value"), class.Value, message).
		withFix("Restart the placeholders (kubectl rollout restart): new pods get the value of today.").milder(SeverityWarning)}
}
