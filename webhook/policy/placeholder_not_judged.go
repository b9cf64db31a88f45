package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/placement"
)

// Applies to: Deployments without a mark of a placeholder, and StatefulSets, DaemonSets, Jobs, bare Pods and others.
// Requires: what holds the nodes of a pool, or carries such a mark, to be a placeholder Deployment.
// Why: nothing else is filled, refused or kept current, and no other rule says anything about it.
var placeholderNotJudged = &Rule{
	ID:       "placeholder-not-judged",
	Summary:  "What holds a pool's nodes is a Deployment with one of the marks of a placeholder; all else is not judged, filled or kept current.",
	Fix:      "Make it a Deployment with the label " + placement.PoolLabel + ", as in the shipped manifests, or remove the mark.",
	Subject:  Workload,
	Severity: SeverityWarning,
	audit: func(a *Audit) {
		for _, w := range a.otherWorkloads() {
			if !a.IsWorkspace(w.Labels) && !a.IsWorkspace(w.PodLabels) {
				a.judgeWorkload(w)
			}
		}
	},
}

// otherWorkloads are what makes pods and is no placeholder Deployment, in the order of kinds and names. A live cluster
// shows StatefulSets and others by their pods.
func (a *Audit) otherWorkloads() []*cluster.Workload {
	found := map[string]*cluster.Workload{}
	for _, pod := range a.facts.Pods.All() {
		if w := a.podsWorkload(pod); w != nil {
			found[w.Key()] = w
		}
	}
	for _, ds := range a.facts.DaemonSets.All() {
		w := &cluster.Workload{Kind: "DaemonSet", Namespace: ds.Namespace, Name: ds.Name, Labels: ds.Labels, PodLabels: ds.Spec.Template.Labels, PodSpec: &ds.Spec.Template.Spec}
		if _, shown := found[w.Key()]; !shown || ds.Spec.Template.Spec.PriorityClassName != "" {
			found[w.Key()] = w
		}
	}
	for _, w := range a.facts.Workloads.All() {
		found[w.Key()] = w
	}
	for _, d := range a.facts.Deployments.All() {
		if d.Spec.Selector != nil && !LooksLikePlaceholder(d, a.config.Placeholders.PriorityClassName) {
			w := &cluster.Workload{Kind: "Deployment", Namespace: d.Namespace, Name: d.Name, Labels: d.Labels, PodLabels: d.Spec.Template.Labels, PodSpec: &d.Spec.Template.Spec}
			found[w.Key()] = w
		}
	}
	var sorted []*cluster.Workload
	for _, key := range slices.Sorted(maps.Keys(found)) {
		sorted = append(sorted, found[key])
	}
	return sorted
}

// podsWorkload is the controller of a pod, or the pod itself where it has none; nil where another object says more: a
// Deployment, or a placeholder that selects the pod.
func (a *Audit) podsWorkload(pod *corev1.Pod) *cluster.Workload {
	if Ended(pod) {
		return nil
	}
	w := &cluster.Workload{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, PodLabels: pod.Labels, PodSpec: &pod.Spec}
	if mark, _ := a.markOf(w); mark == "" && !MayHoldRoom(w.PodSpec) || a.IsWorkspace(pod.Labels) {
		return nil // as most are: what follows takes time
	}
	switch controller := metav1.GetControllerOf(pod); {
	case controller == nil:
		if len(a.deploymentsOf(pod)) > 0 || a.isSelected(pod) {
			return nil
		}
	case controller.Kind == "ReplicaSet", controller.Kind == "Node":
		return nil
	default:
		w.Kind, w.Name = controller.Kind, controller.Name
	}
	return w
}

// isSelected tells that some Deployment without a mark selects a pod of which no controller is known, as in files.
func (a *Audit) isSelected(pod *corev1.Pod) bool {
	for _, d := range a.facts.Deployments.Prefix(pod.Namespace + "/") {
		selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(pod.Labels)) {
			return true
		}
	}
	return false
}

// judgeWorkload reports what carries a mark of a placeholder, or plainly is one.
func (a *Audit) judgeWorkload(w *cluster.Workload) {
	pool := a.poolHeldBy(w.PodSpec)
	if mark, path := a.markOf(w); mark != "" {
		pool = cmp.Or(a.pools.Get(podLabel(w, placement.PoolLabel)), pool)
		a.about(w.Kind, w.Namespace, w.Name, poolName(pool)).
			forbidden(path, "not judged: it has %s and is a %s: only Deployments are placeholders, so nothing of it is filled, refused or kept current", mark, w.Kind)
		return
	}
	if pool == nil || !HoldsRoom(w.PodSpec, a.facts.PriorityClasses) {
		return
	}
	name := pool.Config.Name
	f := a.about(w.Kind, w.Namespace, w.Name, name).forbidden(field.NewPath("metadata", "labels"),
		"not judged: its pods only hold nodes of pool %s (%s), and it has none of the marks of a placeholder: nothing of it is filled, refused or kept current",
		name, a.describeHold(w.PodSpec))
	if w.Kind == "Deployment" {
		f.withFix("Label the Deployment %s: %s.", placement.PoolLabel, name)
	} else {
		f.withFix("Make it a Deployment with the label %s: %s, as in the shipped manifests.", placement.PoolLabel, name)
	}
}

// markOf is the mark that a Deployment would be a placeholder by. Deployments come without.
func (a *Audit) markOf(w *cluster.Workload) (mark string, path *field.Path) {
	template := templatePath
	switch w.Kind {
	case "Pod":
		template = nil
	case "CronJob":
		template = field.NewPath("spec", "jobTemplate").Child("spec", "template")
	}
	for _, key := range []string{placement.PoolLabel, appLabel} {
		value := podLabel(w, key)
		if value == "" || key == appLabel && value != placeholderApp {
			continue
		}
		at := template.Child("metadata", "labels")
		if _, own := w.Labels[key]; own {
			at = field.NewPath("metadata", "labels")
		}
		return "the label " + key + "=" + clip(value), at.Key(key)
	}
	if class := w.PodSpec.PriorityClassName; class != "" && class == a.config.Placeholders.PriorityClassName {
		return "the placeholders' PriorityClass " + class, template.Child("spec", "priorityClassName")
	}
	return "", nil
}

// podLabel is a label of the workload, else of its pods.
func podLabel(w *cluster.Workload, key string) string {
	if value, ok := w.Labels[key]; ok || w.Kind == "Deployment" {
		return value
	}
	return w.PodLabels[key]
}

// poolHeldBy is the pool whose nodes pods are made for: their node selection names it, or they tolerate its taints one by
// one. It is nil where they can never run there.
func (a *Audit) poolHeldBy(spec *corev1.PodSpec) *placement.Pool {
	keyed := slices.DeleteFunc(slices.Clone(spec.Tolerations), func(t corev1.Toleration) bool { return t.Key == "" })
	named := a.pools.Named(spec)
	for _, pool := range a.pools.All() {
		untolerated, _ := pool.Untolerated(keyed)
		meant := slices.Contains(named, pool) || len(pool.Taints) > 0 && len(untolerated) == 0
		if meant && !pool.Fit(spec).Conflict {
			return pool
		}
	}
	return nil
}

func (a *Audit) describeHold(spec *corev1.PodSpec) string {
	class := "PriorityClass " + spec.PriorityClassName
	if known := a.facts.PriorityClasses.Get(spec.PriorityClassName); known != nil {
		class += fmt.Sprintf(" of value %d", known.Value)
	}
	var images []string
	for i := range spec.Containers {
		images = append(images, spec.Containers[i].Image)
	}
	return clip(class + ", image " + strings.Join(images, ", "))
}
