package policy

import (
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"warmpool.sh/webhook/placement"
)

// Labels that mark a Deployment as a placeholder beside placement.PoolLabel.
const (
	appLabel       = "app"
	placeholderApp = "spaces-overprovisioning"
)

// IsPlaceholder tells whether the Deployment is a placeholder: labelled warmpool.sh/pool or
// app=spaces-overprovisioning, or with pods of the placeholder PriorityClass, and not the Deployment of a Workspace,
// which may carry a copy of the pool label.
func (e *Evaluator) IsPlaceholder(d *appsv1.Deployment) bool {
	if e.IsWorkspace(d.Labels) || e.IsWorkspace(d.Spec.Template.Labels) {
		return false
	}
	return LooksLikePlaceholder(d, e.config.Placeholders.PriorityClassName)
}

// LooksLikePlaceholder is IsPlaceholder without the look at Workspaces' labels, for readers that have no Evaluator yet.
func LooksLikePlaceholder(d *appsv1.Deployment, priorityClassName string) bool {
	_, labelled := d.Labels[placement.PoolLabel]
	return labelled || d.Labels[appLabel] == placeholderApp ||
		d.Spec.Template.Spec.PriorityClassName == priorityClassName
}

// IsServer tells the Deployments that run warmpool serve.
func IsServer(d *appsv1.Deployment) bool {
	return slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		image, _, _ := strings.Cut(path.Base(c.Image), "@")
		image, _, _ = strings.Cut(image, ":")
		return (image == "warmpool" || c.Name == "warmpool") && slices.Contains(slices.Concat(c.Command, c.Args), "serve")
	})
}

// ReplicasOf are the replicas that the API server reads.
func ReplicasOf(d *appsv1.Deployment) int32 { return ptr.Deref(d.Spec.Replicas, 1) }

// isPaused tells that a Deployment is to have no pods.
func isPaused(d *appsv1.Deployment) bool { return ReplicasOf(d) == 0 }

// replicaSetRefused is the reason of a Deployment whose ReplicaSet itself could not be created.
const replicaSetRefused = "ReplicaSetCreateError"

// podFailure is the condition by which a Deployment says that it cannot have its pods; nil without one.
func podFailure(d *appsv1.Deployment) *appsv1.DeploymentCondition {
	for i := range d.Status.Conditions {
		c := &d.Status.Conditions[i]
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue ||
			c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse && c.Reason == replicaSetRefused {
			return c
		}
	}
	return nil
}

// placeholderNamespaces are the namespaces that have placeholders, sorted.
func (a *Audit) placeholderNamespaces() []string {
	var names []string
	for _, o := range a.Placeholders {
		names = append(names, o.Namespace)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
