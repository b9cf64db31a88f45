package cluster

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What is kept of objects from a cluster.

func keepNode(node *corev1.Node) {
	kept := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name, ResourceVersion: node.ResourceVersion,
			Labels: node.Labels, DeletionTimestamp: node.DeletionTimestamp, CreationTimestamp: node.CreationTimestamp,
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
}

func keepNamespace(namespace *corev1.Namespace) {
	*namespace = corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace.Name, ResourceVersion: namespace.ResourceVersion, Labels: namespace.Labels,
	}}
}

// keepDeployment keeps of the status how many pods there are and why there are no more, or each step of a rollout would
// make a new Snapshot.
func keepDeployment(deployment *appsv1.Deployment) {
	status := &deployment.Status
	kept := appsv1.DeploymentStatus{Replicas: status.Replicas, ReadyReplicas: status.ReadyReplicas}
	for _, condition := range status.Conditions {
		refused := condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue
		if refused || condition.Type == appsv1.DeploymentProgressing && condition.Status == corev1.ConditionFalse {
			kept.Conditions = append(kept.Conditions, appsv1.DeploymentCondition{
				Type: condition.Type, Status: condition.Status, Reason: condition.Reason, Message: condition.Message,
			})
		}
	}
	deployment.Status = kept
}

// keepDaemonSet keeps what decides on which nodes the DaemonSet runs and what it takes there.
func keepDaemonSet(daemonSet *appsv1.DaemonSet) {
	kept := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{
		Name: daemonSet.Name, Namespace: daemonSet.Namespace, ResourceVersion: daemonSet.ResourceVersion,
		DeletionTimestamp: daemonSet.DeletionTimestamp,
	}}
	kept.Spec.Template.Labels = daemonSet.Spec.Template.Labels
	pod := &daemonSet.Spec.Template.Spec
	kept.Spec.Template.Spec = corev1.PodSpec{
		NodeName: pod.NodeName, NodeSelector: pod.NodeSelector, Tolerations: pod.Tolerations, HostNetwork: pod.HostNetwork,
		InitContainers: requestsOf(pod.InitContainers), Containers: requestsOf(pod.Containers),
		Resources: pod.Resources, Overhead: pod.Overhead, RuntimeClassName: pod.RuntimeClassName,
	}
	if pod.Affinity != nil && pod.Affinity.NodeAffinity != nil {
		kept.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: pod.Affinity.NodeAffinity}
	}
	*daemonSet = kept
}

// requestsOf keeps what containers ask for.
func requestsOf(containers []corev1.Container) []corev1.Container {
	var kept []corev1.Container
	for _, c := range containers {
		kept = append(kept, corev1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy})
	}
	return kept
}

// keepResourceQuota keeps what limits pods: other counts change with every object of the namespace.
func keepResourceQuota(quota *corev1.ResourceQuota) {
	ofPods := func(all corev1.ResourceList) corev1.ResourceList {
		maps.DeleteFunc(all, func(name corev1.ResourceName, _ resource.Quantity) bool { return !LimitsPods(name) })
		return all
	}
	*quota = corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: quota.Name, Namespace: quota.Namespace, ResourceVersion: quota.ResourceVersion},
		Spec: corev1.ResourceQuotaSpec{
			Hard: ofPods(quota.Spec.Hard), Scopes: quota.Spec.Scopes, ScopeSelector: quota.Spec.ScopeSelector,
		},
		Status: corev1.ResourceQuotaStatus{Used: ofPods(quota.Status.Used)},
	}
}

// keepPlaceholderPod keeps what proves that the pod's images are on its node; of the annotations what scaling down goes by.
func keepPlaceholderPod(pod *corev1.Pod) {
	kept := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			Labels: pod.Labels, OwnerReferences: pod.OwnerReferences, DeletionTimestamp: pod.DeletionTimestamp, CreationTimestamp: pod.CreationTimestamp,
		},
		Spec:   corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, InitContainerStatuses: pod.Status.InitContainerStatuses},
	}
	if cost, ok := pod.Annotations[corev1.PodDeletionCost]; ok {
		kept.Annotations = map[string]string{corev1.PodDeletionCost: cost}
	}
	for _, c := range pod.Spec.InitContainers {
		kept.Spec.InitContainers = append(kept.Spec.InitContainers, corev1.Container{Name: c.Name, Image: c.Image, RestartPolicy: c.RestartPolicy})
	}
	for _, c := range pod.Spec.Containers {
		if !IsPauseImage(c.Image) {
			kept.Spec.Containers = append(kept.Spec.Containers, corev1.Container{Name: c.Name, Image: c.Image})
		}
	}
	if len(kept.Spec.Containers) > 0 {
		kept.Status.ContainerStatuses = pod.Status.ContainerStatuses
	}
	for _, v := range pod.Spec.Volumes {
		if v.Image != nil {
			kept.Spec.Volumes = append(kept.Spec.Volumes, v)
		}
	}
	*pod = kept
}

// keepAuditedPod drops what audits do not look at and what may be secret: thousands of pods are held at once.
func keepAuditedPod(pod *corev1.Pod) {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			c := &containers[i]
			c.Env, c.EnvFrom, c.VolumeMounts = nil, nil, nil
			c.LivenessProbe, c.ReadinessProbe, c.StartupProbe = nil, nil, nil
		}
	}
}

// keepNodePool keeps of the status whether it is ready; its counters change with every node.
func keepNodePool(content map[string]any) {
	conditions, _, err := unstructured.NestedSlice(content, "status", "conditions")
	delete(content, "status")
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

// keepNodeClaim keeps what is read; a section that is no object stays, to be reported as malformed.
func keepNodeClaim(content map[string]any) {
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
