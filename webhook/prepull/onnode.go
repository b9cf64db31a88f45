package prepull

import corev1 "k8s.io/api/core/v1"

// OnNode gives the images of the pre-pull containers that are proven to be on the pod's node, in the order of the containers.
// warm tells that these are all, and that the pod holds a node. This alone decides what counts as warm, in labels,
// metrics and audits.
func OnNode(pod *corev1.Pod) (images []string, warm bool) {
	pulls, missing := false, false
	running := pod.Status.Phase == corev1.PodRunning
	for i := range pod.Spec.InitContainers {
		container := &pod.Spec.InitContainers[i]
		if !Owns(container.Name) {
			continue
		}
		pulls = true
		status := Status(pod, container.Name)
		// A pod runs only after its init containers, whose statuses a file may lack.
		if status == nil && running || status != nil && isPulled(status) {
			images = append(images, container.Image)
		} else {
			missing = true
		}
	}
	// A pod with nothing to pull has something to show for itself once it runs.
	return images, pod.Spec.NodeName != "" && !missing && (pulls || running)
}

// isPulled tells whether a container has ended well, or could not be started: the kubelet gets that far with the image
// alone. One that was started and ended badly proves as much, but may go on doing so, and its pod never runs.
func isPulled(status *corev1.ContainerStatus) bool {
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

// isStartFailure knows the words of containerd and CRI-O, and that of dockershim.
func isStartFailure(ended *corev1.ContainerStateTerminated) bool {
	return ended != nil && (ended.Reason == "StartError" || ended.Reason == "ContainerCannotRun")
}
