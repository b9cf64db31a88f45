package live

import (
	"context"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/cluster"
)

// CacheOptions makes the manager's cache hold only what rules need: in a cluster of 10,000 nodes the rest would fill
// gigabytes. namespace is warmpool's own, placeholders that of the placeholders. candidate tells which Deployments may be placeholders; others keep nothing but
// their name. It must give the same answer for a Deployment without spec and labels, unless that answer is no.
func CacheOptions(namespace, placeholders string, candidate func(*appsv1.Deployment) bool) cache.Options {
	return cache.Options{
		NewInformer:      newInformer(),
		DefaultTransform: bounded(strip),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Node{}:          {Transform: bounded(stripNode)},
			&corev1.Namespace{}:     {Transform: bounded(stripNamespace)},
			&appsv1.Deployment{}:    {Transform: bounded(stripDeployments(candidate))},
			&appsv1.DaemonSet{}:     {Transform: bounded(stripDaemonSet)},
			&corev1.ConfigMap{}:     onlyLastSeen(namespace),
			&corev1.Pod{}:           {Namespaces: map[string]cache.Config{placeholders: {}}, Transform: bounded(stripPod)},
			&corev1.ResourceQuota{}: {Namespaces: map[string]cache.Config{placeholders: {}}, Transform: bounded(stripQuota)},
		},
		DefaultWatchErrorHandler: func(ctx context.Context, reflector *toolscache.Reflector, err error) {
			if apierrors.IsNotFound(err) {
				return // the CRD is gone; discovery notices and says so once
			}
			toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		},
	}
}

// strip drops what no one reads of any object. What is no object, such as the tombstone of a missed deletion, passes.
func strip(obj any) (any, error) {
	if o, ok := obj.(metav1.Object); ok && len(o.GetManagedFields()) > 0 {
		o.SetManagedFields(nil)
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		switch u.GroupVersionKind().GroupKind() {
		case cluster.WorkspaceTemplateGroupKind:
			unstructured.RemoveNestedField(u.Object, "status")
		case cluster.NodePoolGroupKind:
			stripNodePoolStatus(u.Object)
		case cluster.NodeClaimGroupKind:
			stripNodeClaim(u.Object)
		}
	}
	return obj, nil
}

// stripNodePoolStatus keeps whether it is ready; its counters change with every node.
func stripNodePoolStatus(content map[string]any) {
	conditions, _, err := unstructured.NestedSlice(content, "status", "conditions")
	unstructured.RemoveNestedField(content, "status")
	if err != nil {
		return
	}
	for _, condition := range conditions {
		if fields, ok := condition.(map[string]any); ok && fields["type"] == "Ready" {
			delete(fields, "lastTransitionTime")
			content["status"] = map[string]any{"conditions": []any{fields}}
		}
	}
}

// stripNodeClaim keeps what is read; a section that is no object stays, to be told as malformed.
func stripNodeClaim(content map[string]any) {
	for section, names := range map[string][]string{
		"metadata": {"name", "resourceVersion", "labels", "deletionTimestamp"},
		"spec":     {"taints", "requirements"},
		"status":   {"allocatable"},
	} {
		if fields, ok := content[section].(map[string]any); ok {
			maps.DeleteFunc(fields, func(name string, _ any) bool { return !slices.Contains(names, name) })
		}
	}
}

func stripNode(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	kept := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name, ResourceVersion: node.ResourceVersion,
			Labels: node.Labels, DeletionTimestamp: node.DeletionTimestamp,
		},
		Spec:   corev1.NodeSpec{Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable},
		Status: corev1.NodeStatus{Allocatable: node.Status.Allocatable},
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady || condition.Type == corev1.NodeDiskPressure {
			// Without the heartbeat's time and the message, or every node would change every few minutes.
			kept.Status.Conditions = append(kept.Status.Conditions, corev1.NodeCondition{
				Type: condition.Type, Status: condition.Status,
				Reason: condition.Reason, LastTransitionTime: condition.LastTransitionTime,
			})
		}
	}
	*node = kept
	return node, nil
}

func stripNamespace(obj any) (any, error) {
	if namespace, ok := obj.(*corev1.Namespace); ok {
		*namespace = corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: namespace.Name, ResourceVersion: namespace.ResourceVersion, Labels: namespace.Labels,
		}}
	}
	return obj, nil
}

func stripDeployments(candidate func(*appsv1.Deployment) bool) toolscache.TransformFunc {
	return func(obj any) (any, error) {
		deployment, ok := obj.(*appsv1.Deployment)
		if !ok {
			return obj, nil
		}
		if candidate(deployment) {
			deployment.Status = stripStatus(&deployment.Status)
			return strip(deployment)
		}
		*deployment = appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Name: deployment.Name, Namespace: deployment.Namespace, ResourceVersion: deployment.ResourceVersion,
		}}
		return deployment, nil
	}
}

// stripStatus keeps how many pods there are and why there are no more, or each step of a rollout would make a new Snapshot.
func stripStatus(status *appsv1.DeploymentStatus) appsv1.DeploymentStatus {
	kept := appsv1.DeploymentStatus{Replicas: status.Replicas, ReadyReplicas: status.ReadyReplicas}
	for _, condition := range status.Conditions {
		refused := condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue
		if refused || condition.Type == appsv1.DeploymentProgressing && condition.Status == corev1.ConditionFalse {
			kept.Conditions = append(kept.Conditions, appsv1.DeploymentCondition{
				Type: condition.Type, Status: condition.Status, Reason: condition.Reason, Message: condition.Message,
			})
		}
	}
	return kept
}

// stripped tells the Deployments that are no candidates: the API server takes none without a selector.
func stripped(deployment *appsv1.Deployment) bool { return deployment.Spec.Selector == nil }

// stripDaemonSet keeps what decides on which nodes the DaemonSet runs and what it takes there.
func stripDaemonSet(obj any) (any, error) {
	daemonSet, ok := obj.(*appsv1.DaemonSet)
	if !ok {
		return obj, nil
	}
	kept := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{
		Name: daemonSet.Name, Namespace: daemonSet.Namespace, ResourceVersion: daemonSet.ResourceVersion,
		DeletionTimestamp: daemonSet.DeletionTimestamp,
	}}
	kept.Spec.Template.Labels = daemonSet.Spec.Template.Labels
	pod := &daemonSet.Spec.Template.Spec
	kept.Spec.Template.Spec = corev1.PodSpec{
		NodeName: pod.NodeName, NodeSelector: pod.NodeSelector, Tolerations: pod.Tolerations, HostNetwork: pod.HostNetwork,
		InitContainers: stripContainers(pod.InitContainers, false), Containers: stripContainers(pod.Containers, false),
		Resources: pod.Resources, Overhead: pod.Overhead, RuntimeClassName: pod.RuntimeClassName,
	}
	if pod.Affinity != nil && pod.Affinity.NodeAffinity != nil {
		kept.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: pod.Affinity.NodeAffinity}
	}
	*daemonSet = kept
	return daemonSet, nil
}

// stripQuota keeps what limits pods: other counts change with every object of the namespace.
func stripQuota(obj any) (any, error) {
	quota, ok := obj.(*corev1.ResourceQuota)
	if !ok {
		return obj, nil
	}
	ofPods := func(all corev1.ResourceList) corev1.ResourceList {
		maps.DeleteFunc(all, func(name corev1.ResourceName, _ resource.Quantity) bool { return !cluster.LimitsPods(name) })
		return all
	}
	*quota = corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: quota.Name, Namespace: quota.Namespace, ResourceVersion: quota.ResourceVersion},
		Spec: corev1.ResourceQuotaSpec{
			Hard: ofPods(quota.Spec.Hard), Scopes: quota.Spec.Scopes, ScopeSelector: quota.Spec.ScopeSelector,
		},
		Status: corev1.ResourceQuotaStatus{Used: ofPods(quota.Status.Used)},
	}
	return quota, nil
}

// stripContainers keeps what they ask for, and perhaps their images.
func stripContainers(containers []corev1.Container, images bool) []corev1.Container {
	if containers == nil {
		return nil
	}
	kept := make([]corev1.Container, len(containers))
	for i, c := range containers {
		kept[i] = corev1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
		if images {
			kept[i].Image = c.Image
		}
	}
	return kept
}
