package warmlabels

import (
	"slices"
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
// only when the status of a container or of the pod proves it.
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
func progress(pod *corev1.Pod, labels map[string]string) state {
	images, isWarm := prepull.OnNode(pod)
	for _, image := range images {
		labels[prepull.ImageLabel(image)] = "true"
	}
	switch {
	case pod.Spec.NodeName == "":
		return pending
	case isWarm:
		return warm
	case anyKeepsFailing(pod): // also where an earlier container cannot be started: the next ones wait for it
		return failed
	default:
		return pulling
	}
}

// anyKeepsFailing reports whether one of the pre-pull containers does; of a pod without any, a container that brings an image.
func anyKeepsFailing(pod *corev1.Pod) bool {
	before := pod.Labels[prepull.WarmLabel] == prepull.WarmFailed
	fails := func(c corev1.Container) bool {
		status := prepull.Status(pod, c.Name)
		return status != nil && keepsFailing(status, before)
	}
	owned := func(c corev1.Container) bool { return prepull.Owns(c.Name) }
	if slices.ContainsFunc(pod.Spec.InitContainers, owned) {
		return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return owned(c) && fails(c) })
	}
	present := prepull.Present(&pod.Spec)
	return slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c corev1.Container) bool {
		return slices.Contains(present, c.Image) && fails(c)
	})
}

// keepsFailing reports that a container has failed and that the kubelet has begun to back off, by up to five minutes: one
// failed try alone, such as a registry's hiccup, is none. before tells that the container was failing at the last look, as
// it still is while its next tries fail.
func keepsFailing(status *corev1.ContainerStatus, before bool) bool {
	if waiting := status.State.Waiting; waiting != nil {
		switch waiting.Reason {
		case "ImagePullBackOff", "CrashLoopBackOff":
			return true
		case "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError":
			return true // another try alone fixes none of these
		}
		if prepull.IsPullFailure(waiting.Reason) {
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
