package warmlabels

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"warmpool.sh/webhook/policy"
)

// poolsOf are the names of the pools of the Deployments whose pods are labelled.
func poolsOf(e *policy.Evaluator) map[types.NamespacedName]string {
	found := map[types.NamespacedName]string{}
	for _, d := range e.Facts().Deployments.All() {
		if hasLabelledPods(e, d) {
			found[types.NamespacedName{Namespace: d.Namespace, Name: d.Name}] = e.Placeholder(d, d.Namespace).PoolName()
		}
	}
	return found
}

// isLabelled is poolsOf for the Deployment of one pod.
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

// deploymentOf is the key of the Deployment whose ReplicaSet controls a pod; without a name: there is none.
func deploymentOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: policy.DeploymentOf(pod)}
}
