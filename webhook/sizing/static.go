package sizing

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/cluster"
)

// staticPods are the pods that kubelets run from files, as far as their mirror pods are among the facts. They take room
// like the pods of DaemonSets, on their own nodes alone: others of the type may have other files. Those of one name that
// ask for the same are one Daemon.
func staticPods(facts *cluster.Snapshot) []*Daemon {
	found := map[string]*Daemon{}
	for _, pod := range facts.Pods.All() {
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if pod.Spec.NodeName == "" || ended || !isMirror(pod) {
			continue
		}
		request := request(&pod.Spec, nil, facts)
		maps.DeleteFunc(request, func(_ corev1.ResourceName, quantity resource.Quantity) bool { return quantity.Sign() < 0 })
		name := pod.Namespace + "/" + strings.TrimSuffix(pod.Name, "-"+pod.Spec.NodeName) + " (static pod)"
		variant := Quantities(request)
		if found[name+variant] == nil {
			found[name+variant] = &Daemon{Name: name, Request: request, variant: variant, nodes: map[string]bool{}}
		}
		found[name+variant].nodes[pod.Spec.NodeName] = true
	}
	var all []*Daemon
	for _, key := range slices.Sorted(maps.Keys(found)) {
		all = append(all, found[key])
	}
	return all
}

// isMirror tells the pods by which kubelets show their static ones.
func isMirror(pod *corev1.Pod) bool {
	_, marked := pod.Annotations[corev1.MirrorPodAnnotationKey]
	owner := metav1.GetControllerOf(pod)
	return marked || owner != nil && owner.Kind == "Node"
}
