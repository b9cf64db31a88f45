package policy

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"warmpool.sh/webhook/prepull"
)

// Ended tells whether a pod holds nothing any more, or is about to let go of it.
func Ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || pod.DeletionTimestamp != nil
}

// Pods are the pods of a placeholder that have not ended, oldest first.
func (a *Audit) Pods(o *Object) []*corev1.Pod {
	if a.podsOf == nil {
		a.podsOf = a.findPods()
	}
	return a.podsOf[o.key()]
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
	for _, o := range a.Placeholders {
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

// IsWarm tells whether a pod holds its node and the images to pre-pull are there.
func IsWarm(pod *corev1.Pod) bool {
	_, warm := prepull.OnNode(pod)
	return warm
}

// WorkspaceContainer is the container that the user of a Workspace pod works in: workspace, or the first where another
// operator names it otherwise. It is nil for a pod without containers.
func WorkspaceContainer(spec *corev1.PodSpec) *corev1.Container {
	if i := workspaceContainer(spec); i >= 0 {
		return &spec.Containers[i]
	}
	return nil
}

// workspaceContainer is its index, or -1.
func workspaceContainer(spec *corev1.PodSpec) int {
	i := slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == "workspace" })
	if i < 0 && len(spec.Containers) > 0 {
		return 0
	}
	return i
}

// isSidecar tells whether an init container runs until the pod ends.
func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// isBound tells whether a pod has its node already: placement comes too late, and the kubelet would refuse the pod
// for an affinity that the node does not meet.
func isBound(o *Object) bool { return o.Pod != nil && o.Spec.NodeName != "" }
