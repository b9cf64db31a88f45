package live

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
			InitContainers: stripContainers(pod.Spec.InitContainers), Containers: stripContainers(pod.Spec.Containers),
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, Conditions: pod.Status.Conditions, ContainerStatuses: pod.Status.ContainerStatuses},
	}
	if pod.Spec.Affinity != nil {
		kept.Spec.Affinity = &corev1.Affinity{NodeAffinity: pod.Spec.Affinity.NodeAffinity}
	}
	*pod = kept
	return pod, nil
}

// stripContainers keeps what they ask for and their images.
func stripContainers(containers []corev1.Container) []corev1.Container {
	var kept []corev1.Container
	for _, c := range containers {
		kept = append(kept, corev1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy, Image: c.Image})
	}
	return kept
}
