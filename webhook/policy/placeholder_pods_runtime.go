package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// checkRuntimeClass looks for what the API server refuses in pods for the sake of their RuntimeClass.
func checkRuntimeClass(o *Object) []Finding {
	path, classes := o.specPath("runtimeClassName"), o.facts.RuntimeClasses
	if o.Spec.RuntimeClassName == nil {
		return overheadOf(o, "without a RuntimeClass", nil)
	}
	name := *o.Spec.RuntimeClassName
	class := classes.Get(name)
	switch reason := classes.Malformed(name); {
	case !classes.Known():
		return []Finding{notVerified(path, "RuntimeClasses: "+classes.Reason()).withKey("not verified: RuntimeClass").atMostAudit()}
	case class == nil && reason != "":
		return []Finding{notVerified(path, fmt.Sprintf("RuntimeClass %s: %s", name, reason)).withKey("not verified: RuntimeClass").atMostAudit()}
	case class == nil:
		return []Finding{invalid(path, name, fmt.Sprintf("RuntimeClass %s does not exist: the API server refuses every pod", name)).
			withFix("Create the RuntimeClass, or remove runtimeClassName from the pod template.")}
	}
	return append(overheadOf(o, "with RuntimeClass "+name, class.Overhead), nodeSelectorOf(o, class)...)
}

func overheadOf(o *Object, with string, overhead *nodev1.Overhead) []Finding {
	var wants corev1.ResourceList
	if overhead != nil {
		wants = overhead.PodFixed
	}
	if len(o.Spec.Overhead) == 0 || equality.Semantic.DeepEqual(o.Spec.Overhead, wants) {
		return nil
	}
	return []Finding{invalid(o.specPath("overhead"), listText(o.Spec.Overhead), fmt.Sprintf("the overhead of a pod %s is %s: the API server refuses every pod", with, cmp.Or(listText(wants), "none"))).
		withFix("Remove overhead from the pod template: only a RuntimeClass gives it.")}
}

// listText writes resources down for messages.
func listText(list corev1.ResourceList) string {
	var words []string
	for _, name := range sortedNames(list) {
		quantity := list[name]
		words = append(words, fmt.Sprintf("%s %s", name, quantity.String()))
	}
	return clip(strings.Join(words, ", "))
}

func nodeSelectorOf(o *Object, class *nodev1.RuntimeClass) []Finding {
	if class.Scheduling == nil {
		return nil
	}
	var findings []Finding
	for _, key := range slices.Sorted(maps.Keys(class.Scheduling.NodeSelector)) {
		wants := class.Scheduling.NodeSelector[key]
		if own, ok := o.Spec.NodeSelector[key]; ok && own != wants {
			findings = append(findings, invalid(o.specPath("nodeSelector").Key(key), own, fmt.Sprintf("RuntimeClass %s wants %q: the API server refuses every pod", class.Name, wants)).
				withFix("Remove the label from the pod template's nodeSelector, or take another RuntimeClass."))
		}
	}
	return findings
}
