package policy

import (
	"cmp"
	"maps"
	"slices"

	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"warmpool.sh/webhook/sizing"
)

// checkRuntimeClass looks for what the API server refuses in pods for the sake of their RuntimeClass.
func checkRuntimeClass(o *Object) {
	if o.Spec.RuntimeClassName == nil {
		checkOverhead(o, "without a RuntimeClass", nil)
		return
	}
	path, name, classes := o.specPath("runtimeClassName"), *o.Spec.RuntimeClassName, o.e.facts.RuntimeClasses
	class := classes.Get(name)
	if why := classes.Unreadable("RuntimeClasses", "RuntimeClass "+name, name); why != "" {
		o.notVerified(path, "%s", why).withKey("not verified: RuntimeClass").atMostAudit()
		return
	}
	if class == nil {
		o.invalid(path, name, "RuntimeClass %s does not exist: the API server refuses every pod", name).
			withFix("Create the RuntimeClass, or remove runtimeClassName from the pod template.")
		return
	}
	checkOverhead(o, "with RuntimeClass "+name, class.Overhead)
	if class.Scheduling == nil {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(class.Scheduling.NodeSelector)) {
		wants := class.Scheduling.NodeSelector[key]
		if own, ok := o.Spec.NodeSelector[key]; ok && own != wants {
			o.invalid(o.specPath("nodeSelector").Key(key), own, "RuntimeClass %s wants %q: the API server refuses every pod", name, wants).
				withFix("Remove the label from the pod template's nodeSelector, or take another RuntimeClass.")
		}
	}
}

func checkOverhead(o *Object, with string, overhead *nodev1.Overhead) {
	wants := ptr.Deref(overhead, nodev1.Overhead{}).PodFixed
	if len(o.Spec.Overhead) > 0 && !equality.Semantic.DeepEqual(o.Spec.Overhead, wants) {
		o.invalid(o.specPath("overhead"), clip(sizing.Quantities(o.Spec.Overhead)), "the overhead of a pod %s is %s: the API server refuses every pod",
			with, cmp.Or(clip(sizing.Quantities(wants)), "none")).
			withFix("Remove overhead from the pod template: only a RuntimeClass gives it.")
	}
}
