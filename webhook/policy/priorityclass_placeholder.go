package policy

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Applies to: the PriorityClass that is configured for placeholders, and others that placeholders name.
// Requires: it exists, with a negative value above Karpenter's cut-off, preemptionPolicy Never, and is not the global
// default; running placeholders have its value.
// Why: value and preemptionPolicy cannot be changed, and pods keep the number that they were created with: what is wrong
// here stays wrong until somebody makes another class.
var priorityClassPlaceholder = &Rule{
	ID:       "priorityclass-placeholder",
	Summary:  "The placeholders' PriorityClass exists, has a negative value above -33,554,432 and preemptionPolicy Never, and is not the global default.",
	Fix:      "Create a class under a new name (value -1000, preemptionPolicy Never) and name it in placeholders.priorityClassName, or delete and recreate this one and restart the placeholders: the field is immutable, and running pods keep their number.",
	Subject:  PriorityClass,
	Severity: SeverityError,
	audit:    auditPriorityClasses,
}

func auditPriorityClasses(a *Audit) {
	classes := a.facts.PriorityClasses
	if a.unread("PriorityClasses", classes) {
		return
	}
	names := map[string]bool{a.config.Placeholders.PriorityClassName: true}
	for _, o := range a.Placeholders {
		if o.Spec.PriorityClassName != "" {
			names[o.Spec.PriorityClassName] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		about := a.about("PriorityClass", "", name, "")
		for i, class := range classes.Variants(name) {
			about.Definition = i + 1
			judgePriorityClass(about, class)
		}
		about.Definition = 0
		switch class, malformed := classes.Get(name), classes.Malformed(name); {
		case class != nil:
			judgePriorityClass(about, class)
			judgeOldPriorities(a, about, class)
		case malformed != "":
			about.notVerified(field.NewPath("value"), "%s", malformed)
		default:
			about.invalid(field.NewPath("metadata", "name"), name, "the PriorityClass does not exist: no pod of a placeholder that names it is created").
				withFix("Create it (value -1000, preemptionPolicy Never), or correct placeholders.priorityClassName in the configuration and the placeholders.").
				orElsewhere(classes, "the PriorityClass is not among these files: without it no pod of a placeholder that names it is created")
		}
	}
}

func judgePriorityClass(about about, class *schedulingv1.PriorityClass) {
	value := field.NewPath("value")
	switch {
	case class.Value >= 0:
		about.invalid(value, class.Value, "not below 0, the priority of Workspaces: no Workspace could preempt a placeholder")
	case class.Value <= emptyNodePriority:
		about.invalid(value, class.Value, "not above %d: Karpenter treats a node with such pods as empty and removes it", emptyNodePriority)
	}
	if class.GlobalDefault {
		about.invalid(field.NewPath("globalDefault"), true, "every new pod of the cluster that names no class gets a placeholder's priority, Workspaces too").
			withFix("Set globalDefault: false, and recreate the pods that were created meanwhile: they keep their number.")
	}
	path := field.NewPath("preemptionPolicy")
	const preempts = "placeholders would evict pods of lower priority to get a node"
	switch {
	case class.PreemptionPolicy == nil:
		about.required(path, "the API server's default is PreemptLowerPriority: %s", preempts)
	case *class.PreemptionPolicy != corev1.PreemptNever:
		about.invalid(path, string(*class.PreemptionPolicy), "is not Never: %s", preempts)
	}
}

// judgeOldPriorities looks for pods that were created while the class, since recreated, had another value.
func judgeOldPriorities(a *Audit, about about, class *schedulingv1.PriorityClass) {
	var names []string
	var had int32
	for _, o := range a.Placeholders {
		for _, pod := range a.Pods(o) {
			if pod.Spec.PriorityClassName == class.Name && pod.Spec.Priority != nil && *pod.Spec.Priority != class.Value {
				names = append(names, pod.Namespace+"/"+pod.Name)
				had = *pod.Spec.Priority
			}
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		about.invalid(field.NewPath("value"), class.Value, "%d placeholder pods were created when the class had another value (such as %d), and keep it: %s", len(names), had, some(names)).
			withFix("Restart the placeholders (kubectl rollout restart): new pods get the value of today.").milder(SeverityWarning)
	}
}
