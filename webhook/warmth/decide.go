package warmth

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/prepull"
)

// state is how far the pre-pull of a placeholder pod is.
type state string

const (
	// pending has no node yet, pulling is on its way, warm is done, failed keeps failing and is tried on.
	pending state = "pending"
	pulling state = "pulling"
	warm    state = "warm"
	failed  state = "failed"
)

// states are all of them.
var states = []state{warm, pulling, failed, pending}

// decide says how far a pod is and which of this package's labels it is to have. An image counts as being on the node
// only when the status of a container that has it proves it.
func decide(pod *corev1.Pod) (state, map[string]string) {
	wanted := imageLabels(pod)
	at := progress(pod)
	switch at {
	case warm:
		wanted[prepull.WarmLabel] = prepull.WarmTrue
	case failed:
		wanted[prepull.WarmLabel] = prepull.WarmFailed
	case pending, pulling:
	}
	return at, wanted
}

// imageLabels are the labels of the images that are on the node. A volume proves its image once the pod runs, for the
// kubelet mounts it before it starts the containers.
func imageLabels(pod *corev1.Pod) map[string]string {
	labels := map[string]string{}
	add := func(image string, present bool) {
		if present && image != "" && !cluster.IsPauseImage(image) {
			labels[prepull.ImageLabel(image)] = "true"
		}
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		add(c.Image, isPulled(c, prepull.Status(pod, c.Name)))
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		add(c.Image, wasStarted(prepull.Status(pod, c.Name)))
	}
	for i := range pod.Spec.Volumes {
		if source := pod.Spec.Volumes[i].Image; source != nil {
			add(source.Reference, pod.Status.Phase == corev1.PodRunning)
		}
	}
	return labels
}

// progress goes by the pre-pull containers. A pod without any is warm once it runs, and fails with its other containers.
func progress(pod *corev1.Pod) state {
	missing, failing, pulls := false, false, false
	before := pod.Labels[prepull.WarmLabel] == prepull.WarmFailed
	for i := range pod.Spec.InitContainers {
		container := &pod.Spec.InitContainers[i]
		if !prepull.Owns(container.Name) {
			continue
		}
		pulls = true
		status := prepull.Status(pod, container.Name)
		missing = missing || !isPulled(container, status)
		failing = failing || keepsFailing(status, before)
	}
	if !pulls {
		missing = pod.Status.Phase != corev1.PodRunning // nobody has to spare it once it runs
		for _, image := range prepull.Present(&pod.Spec) {
			failing = failing || imageFails(pod, image, before)
		}
	}
	switch {
	case pod.Spec.NodeName == "":
		return pending
	case missing && failing: // also where an earlier container cannot be started: the next ones wait for it
		return failed
	case missing:
		return pulling
	default:
		return warm
	}
}

// imageFails tells that a container with the image keeps failing.
func imageFails(pod *corev1.Pod, image string, before bool) bool {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if containers[i].Image == image && keepsFailing(prepull.Status(pod, containers[i].Name), before) {
				return true
			}
		}
	}
	return false
}

// isPulled tells whether an init container has ended well, or could not be started: the kubelet gets that far with the
// image alone. One that was started and ended badly proves as much, but may do so again and again: see keepsFailing. A
// sidecar has only to run.
func isPulled(container *corev1.Container, status *corev1.ContainerStatus) bool {
	if status == nil {
		return false
	}
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

// wasStarted tells that a container runs, has ended, or waits for its next start: its image is on the node.
func wasStarted(status *corev1.ContainerStatus) bool {
	if status == nil {
		return false
	}
	waiting := status.State.Waiting
	return status.State.Running != nil || status.State.Terminated != nil ||
		waiting != nil && (waiting.Reason == "RunContainerError" || waiting.Reason == "CrashLoopBackOff")
}

// isStartFailure knows the words of containerd and CRI-O, and that of dockershim.
func isStartFailure(ended *corev1.ContainerStateTerminated) bool {
	return ended != nil && (ended.Reason == "StartError" || ended.Reason == "ContainerCannotRun")
}

// keepsFailing tells that a container has failed and that the kubelet has begun to back off, by up to five minutes: one
// failed try alone, such as a registry's hiccup, is none. before tells that the container was failing at the last look, as
// it still is while its next tries fail.
func keepsFailing(status *corev1.ContainerStatus, before bool) bool {
	if status == nil {
		return false
	}
	if waiting := status.State.Waiting; waiting != nil {
		switch waiting.Reason {
		case "ImagePullBackOff", "CrashLoopBackOff":
			return true
		case "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError":
			return true // another try alone mends none of these
		case "ErrImagePull", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
			return before
		}
	}
	last := status.LastTerminationState.Terminated // while it runs again, or has just ended again
	return status.RestartCount > 0 && last != nil && last.ExitCode != 0
}

// difference is what brings the labels of a pod to those wanted: a value, or nil for a label that goes. It is empty when
// nothing is to be written.
func difference(have, wanted map[string]string) map[string]*string {
	changes := map[string]*string{}
	for key := range have {
		if _, stays := wanted[key]; isOurs(key) && !stays {
			changes[key] = nil
		}
	}
	for key, value := range wanted {
		if now, there := have[key]; !there || now != value {
			changes[key] = &value
		}
	}
	return changes
}

func isOurs(label string) bool {
	return label == prepull.WarmLabel || strings.HasPrefix(label, prepull.ImageLabelPrefix)
}
