package policy

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"warmpool.sh/webhook/prepull"
)

// Ended tells that a pod holds nothing any more, or is about to let go of it.
func Ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || pod.DeletionTimestamp != nil
}

// pods are the pods of a placeholder that have not ended, oldest first.
func (a *Audit) pods(o *Object) []*corev1.Pod {
	if a.podsOf == nil {
		a.podsOf = a.findPods()
	}
	return a.podsOf[o.Namespace+"/"+o.Name]
}

func (a *Audit) findPods() map[string][]*corev1.Pod {
	found := map[string][]*corev1.Pod{}
	for _, pod := range a.facts.Pods.All() {
		if !Ended(pod) {
			for _, name := range a.deploymentsOf(pod) {
				key := pod.Namespace + "/" + name
				found[key] = append(found[key], pod)
			}
		}
	}
	for _, pods := range found {
		slices.SortStableFunc(pods, func(x, y *corev1.Pod) int { return x.CreationTimestamp.Compare(y.CreationTimestamp.Time) })
	}
	return found
}

// deploymentsOf are the names of the Deployments that a pod belongs to: the one whose ReplicaSet controls it, else the
// placeholders that select it.
func (a *Audit) deploymentsOf(pod *corev1.Pod) []string {
	if metav1.GetControllerOf(pod) != nil {
		if name := DeploymentOf(pod); name != "" {
			return []string{name}
		}
		return nil
	}
	var names []string
	for _, o := range a.placeholders {
		if o.Namespace != pod.Namespace {
			continue // before the selector is made, which takes time for each of thousands of Workspaces
		}
		selector, err := metav1.LabelSelectorAsSelector(o.Deployment.Spec.Selector)
		if err == nil && selector.Matches(labels.Set(pod.Labels)) {
			names = append(names, o.Name)
		}
	}
	return names
}

// DeploymentOf is the name of the Deployment whose ReplicaSet controls a pod; empty: there is none.
func DeploymentOf(pod *corev1.Pod) string {
	controller := metav1.GetControllerOf(pod)
	if controller == nil || controller.Kind != "ReplicaSet" {
		return ""
	}
	return deploymentOfReplicaSet(controller.Name)
}

// deploymentOfReplicaSet takes off what follows the Deployment's name: a hash without dashes.
func deploymentOfReplicaSet(name string) string {
	i := strings.LastIndexByte(name, '-')
	return name[:max(i, 0)]
}

// warm tells that a pod holds its node and that the images to pre-pull are there.
func warm(pod *corev1.Pod) bool {
	_, warm := prepull.OnNode(pod)
	return warm
}
