package warmth

import (
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"warmpool.sh/webhook/policy"
)

// owner is a placeholder Deployment whose pods are labelled.
type owner struct{ pool string }

// placeholdersOf are the Deployments whose pods are labelled.
func placeholdersOf(e *policy.Evaluator) map[types.NamespacedName]owner {
	found := map[types.NamespacedName]owner{}
	for _, d := range e.Facts().Deployments.All() {
		if hasLabelledPods(e, d) {
			found[types.NamespacedName{Namespace: d.Namespace, Name: d.Name}] = owner{pool: e.Placeholder(d, d.Namespace).PoolName()}
		}
	}
	return found
}

// isLabelled is placeholdersOf for the Deployment of one pod.
func isLabelled(e *policy.Evaluator, pod *corev1.Pod) bool {
	d := e.Facts().Deployments.Get(deploymentOf(pod).String())
	return d != nil && hasLabelledPods(e, d)
}

// hasLabelledPods leaves Deployments out that select their pods by the labels: a pod that loses one would be let go of,
// and another made, without end.
func hasLabelledPods(e *policy.Evaluator, d *appsv1.Deployment) bool {
	if d.Namespace != e.Config().Placeholders.Namespace || !e.IsPlaceholder(d) || d.Spec.Selector == nil {
		return false
	}
	keys := slices.Collect(maps.Keys(d.Spec.Selector.MatchLabels))
	for _, expression := range d.Spec.Selector.MatchExpressions {
		keys = append(keys, expression.Key)
	}
	return !slices.ContainsFunc(keys, isOurs)
}

// deploymentOf is the Deployment whose ReplicaSet controls a pod: that is called as the Deployment and a hash without
// dashes. The zero value: none.
func deploymentOf(pod *corev1.Pod) types.NamespacedName {
	controller := metav1.GetControllerOf(pod)
	if controller == nil || controller.Kind != "ReplicaSet" {
		return types.NamespacedName{}
	}
	i := strings.LastIndexByte(controller.Name, '-')
	if i < 0 {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: pod.Namespace, Name: controller.Name[:i]}
}
