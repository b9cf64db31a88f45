package warmth

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

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
// only when the end of a pre-pull container proves it.
func decide(pod *corev1.Pod) (state, map[string]string) {
	wanted := map[string]string{}
	at := progress(pod, wanted)
	switch at {
	case warm:
		wanted[prepull.WarmLabel] = prepull.WarmTrue
	case failed:
		wanted[prepull.WarmLabel] = prepull.WarmFailed
	case pending, pulling:
	}
	return at, wanted
}

// progress notes the labels of the images that are on the node.
func progress(pod *corev1.Pod, images map[string]string) state {
	missing, failing, pulls := false, false, false
	for i := range pod.Spec.InitContainers {
		container := &pod.Spec.InitContainers[i]
		if !prepull.Owns(container.Name) {
			continue
		}
		pulls = true
		status := prepull.Status(pod, container.Name)
		if status != nil && isPulled(status) {
			images[prepull.ImageLabel(container.Image)] = "true"
		} else {
			missing = true
		}
		failing = failing || status != nil && keepsFailing(status, pod.Labels[prepull.WarmLabel] == prepull.WarmFailed)
	}
	switch {
	case pod.Spec.NodeName == "":
		return pending
	case missing && failing: // also where an earlier container cannot be started: the next ones wait for it
		return failed
	case missing, !pulls && pod.Status.Phase != corev1.PodRunning: // nothing to pull: nobody has to spare it once it runs
		return pulling
	default:
		return warm
	}
}

// isPulled tells whether a container has ended well, or could not be started: the kubelet gets that far with the image
// alone. One that was started and ended badly proves as much, but may do so for ever: see keepsFailing.
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

// keepsFailing tells that a container has failed and that the kubelet has begun to back off, by up to five minutes: one
// failed try alone, such as a registry's hiccup, is none. before tells that the container was failing at the last look, as
// it still is while its next tries fail.
func keepsFailing(status *corev1.ContainerStatus, before bool) bool {
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
