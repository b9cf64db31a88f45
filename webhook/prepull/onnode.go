package prepull

import (
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
)

// OnNode gives the images that are proven to be on the pod's node, in the order of Present. warm tells that those of the
// pre-pull containers are all among them, and that the pod holds a node. This alone decides what counts as warm, in labels,
// metrics and audits.
func OnNode(pod *corev1.Pod) (images []string, warm bool) {
	pulls, missing := false, false
	running := pod.Status.Phase == corev1.PodRunning
	add := func(image string, present bool) {
		if present && image != "" && !cluster.IsPauseImage(image) {
			images = append(images, image)
		}
	}
	for i := range pod.Spec.InitContainers {
		container := &pod.Spec.InitContainers[i]
		pulled := proves(pod, container, isPulled)
		add(container.Image, pulled)
		if Owns(container.Name) {
			pulls, missing = true, missing || !pulled
		}
	}
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		add(container.Image, proves(pod, container, wasStarted))
	}
	for i := range pod.Spec.Volumes {
		if source := pod.Spec.Volumes[i].Image; source != nil {
			add(source.Reference, running) // the kubelet mounts it before it starts the containers
		}
	}
	// A pod with nothing to pull has something to show for itself once it runs.
	return images, pod.Spec.NodeName != "" && !missing && (pulls || running)
}

// proves tells whether the status of a container proves that its image is on the node. A pod runs only after its init
// containers, and a file may lack their statuses.
func proves(pod *corev1.Pod, container *corev1.Container, by func(*corev1.Container, *corev1.ContainerStatus) bool) bool {
	if status := Status(pod, container.Name); status != nil {
		return by(container, status)
	}
	return pod.Status.Phase == corev1.PodRunning
}

// isPulled tells whether an init container has ended well, or could not be started: the kubelet gets that far with the
// image alone. One that was started and ended badly proves as much, but may go on doing so, and its pod never runs. A
// sidecar has only to run.
func isPulled(container *corev1.Container, status *corev1.ContainerStatus) bool {
	if status.State.Running != nil {
		return container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
	}
	if ended := status.State.Terminated; ended != nil {
		return ended.ExitCode == 0 || isStartFailure(ended)
	}
	waiting := status.State.Waiting
	if waiting == nil {
		return false
	}
	// What a container could not be started for stands here until the next try, and how the last one ended beside it.
	return waiting.Reason == "RunContainerError" ||
		waiting.Reason == "CrashLoopBackOff" && isStartFailure(status.LastTerminationState.Terminated)
}

// wasStarted tells that a container runs, has ended, or waits for its next start.
func wasStarted(_ *corev1.Container, status *corev1.ContainerStatus) bool {
	waiting := status.State.Waiting
	return status.State.Running != nil || status.State.Terminated != nil ||
		waiting != nil && (waiting.Reason == "RunContainerError" || waiting.Reason == "CrashLoopBackOff")
}

// isStartFailure knows the words of containerd and CRI-O, and that of dockershim.
func isStartFailure(ended *corev1.ContainerStateTerminated) bool {
	return ended != nil && (ended.Reason == "StartError" || ended.Reason == "ContainerCannotRun")
}
