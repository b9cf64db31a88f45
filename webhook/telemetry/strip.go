package telemetry

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/config"
)

// maxBytes is far above the size of a real pod. Of a larger one only that it is there, and where, is kept: whoever may create
// pods must not fill the memory.
const maxBytes = 128 << 10

// strip keeps what a start is told by.
func strip(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	if pod.Size() > maxBytes {
		pod = &corev1.Pod{
			TypeMeta: pod.TypeMeta,
			ObjectMeta: metav1.ObjectMeta{
				Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
				CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
				Labels: map[string]string{config.WorkspaceLabel: pod.Labels[config.WorkspaceLabel]},
			},
			Spec:   corev1.PodSpec{NodeName: pod.Spec.NodeName},
			Status: corev1.PodStatus{Phase: pod.Status.Phase},
		}
	}
	stripped := &corev1.Pod{
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
		stripped.Spec.Affinity = &corev1.Affinity{NodeAffinity: pod.Spec.Affinity.NodeAffinity}
	}
	return stripped, nil
}

// stripContainers keeps names, images and resources: these choose the pool.
func stripContainers(containers []corev1.Container) []corev1.Container {
	stripped := make([]corev1.Container, 0, len(containers))
	for i := range containers {
		stripped = append(stripped, corev1.Container{Name: containers[i].Name, Image: containers[i].Image, Resources: containers[i].Resources})
	}
	return stripped
}
