package simulation

import (
	"crypto/sha256"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// owned are the conditions that the kubelet writes.
var owned = map[corev1.PodConditionType]bool{corev1.PodInitialized: true, corev1.PodReady: true, corev1.ContainersReady: true}

// begin is the status of a pod whose containers wait.
func begin(status *corev1.PodStatus, spec *corev1.PodSpec) {
	now := metav1.Now()
	*status = corev1.PodStatus{Phase: corev1.PodPending, StartTime: &now}
	status.InitContainerStatuses = waiting(spec.InitContainers)
	status.ContainerStatuses = waiting(spec.Containers)
	set(status, corev1.ConditionFalse)
}

func waiting(containers []corev1.Container) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for i := range containers {
		statuses = append(statuses, corev1.ContainerStatus{
			Name: containers[i].Name, Image: containers[i].Image,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}},
		})
	}
	return statuses
}

// finish is an init container that has ended well, or a sidecar that runs.
func finish(status *corev1.ContainerStatus, container *corev1.Container) {
	if container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways {
		runs(status, container)
		return
	}
	now := metav1.Now()
	status.ImageID, status.Ready, status.Started = imageID(container.Image), true, new(bool)
	status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now}}
}

func runs(status *corev1.ContainerStatus, container *corev1.Container) {
	status.ImageID, status.Ready, status.Started = imageID(container.Image), true, new(true)
	status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
}

func ready(status *corev1.PodStatus) {
	status.Phase = corev1.PodRunning
	set(status, corev1.ConditionTrue)
}

func set(status *corev1.PodStatus, value corev1.ConditionStatus) {
	status.Conditions = nil
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: value, LastTransitionTime: metav1.Now()})
	}
}

func imageID(image string) string {
	return fmt.Sprintf("%s@sha256:%x", image, sha256.Sum256([]byte(image)))
}
