package live

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/cluster"
)

// WorkspacePods are the options of a cache of the pods of Workspaces, with what a start is told by.
func WorkspacePods(scheme *runtime.Scheme, workspaces labels.Selector) cache.Options {
	return cache.Options{
		Scheme: scheme, NewInformer: newInformer(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Label: workspaces, Transform: WorkspacePod}},
	}
}

// WorkspacePod is their transform.
var WorkspacePod = bounded(stripWorkspacePod)

// stripWorkspacePod keeps what a start is told by.
func stripWorkspacePod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	kept := corev1.Pod{
		TypeMeta: pod.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp, Labels: pod.Labels,
		},
		Spec: corev1.PodSpec{
			NodeName: pod.Spec.NodeName, NodeSelector: pod.Spec.NodeSelector,
			InitContainers: stripContainers(pod.Spec.InitContainers, true), Containers: stripContainers(pod.Spec.Containers, true),
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, Conditions: pod.Status.Conditions, ContainerStatuses: pod.Status.ContainerStatuses},
	}
	if pod.Spec.Affinity != nil {
		kept.Spec.Affinity = &corev1.Affinity{NodeAffinity: pod.Spec.Affinity.NodeAffinity}
	}
	*pod = kept
	return pod, nil
}

// stripPod keeps what tells whether the pod's images are on its node.
func stripPod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	kept := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			Labels: pod.Labels, OwnerReferences: pod.OwnerReferences, DeletionTimestamp: pod.DeletionTimestamp,
			Annotations: deletionCost(pod),
		},
		Spec:   corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, InitContainerStatuses: pod.Status.InitContainerStatuses},
	}
	for _, c := range pod.Spec.InitContainers {
		kept.Spec.InitContainers = append(kept.Spec.InitContainers, corev1.Container{Name: c.Name, Image: c.Image, RestartPolicy: c.RestartPolicy})
	}
	for _, c := range pod.Spec.Containers {
		if !cluster.IsPauseImage(c.Image) {
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
	return pod, nil
}

// deletionCost is what scaling down goes by; of the annotations no other is read.
func deletionCost(pod *corev1.Pod) map[string]string {
	if cost, ok := pod.Annotations[corev1.PodDeletionCost]; ok {
		return map[string]string{corev1.PodDeletionCost: cost}
	}
	return nil
}

// stripAuditedPod drops what audits do not look at and what may be secret: thousands of pods are held at once.
func stripAuditedPod(obj any) (any, error) {
	if pod, ok := obj.(*corev1.Pod); ok {
		for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range containers {
				c := &containers[i]
				c.Env, c.EnvFrom, c.VolumeMounts = nil, nil, nil
				c.LivenessProbe, c.ReadinessProbe, c.StartupProbe = nil, nil, nil
			}
		}
	}
	return strip(obj)
}
