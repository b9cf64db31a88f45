package imagesync

import (
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/prepull"
)

// failure is a pod that cannot pull an image.
type failure struct{ pod, reason string }

// failures are the images that some placeholder pod cannot pull. A rollout of one of them would only take more warm nodes
// away; one that replaces it is what fixes it.
type failures map[string]failure

// failuresOf looks at the pods in the order of their names; of several that fail on an image the first is reported.
func failuresOf(pods cluster.Facts[corev1.Pod]) failures {
	found := failures{}
	for name, pod := range pods.All() {
		if pod.DeletionTimestamp != nil {
			continue
		}
		for i := range pod.Spec.InitContainers {
			container := &pod.Spec.InitContainers[i]
			if reason := waitsFor(pod, container.Name); prepull.Owns(container.Name) && prepull.IsPullFailure(reason) {
				if _, known := found[container.Image]; !known {
					found[container.Image] = failure{pod: name, reason: reason}
				}
			}
		}
	}
	return found
}

func waitsFor(pod *corev1.Pod, container string) string {
	if s := prepull.Status(pod, container); s != nil && s.State.Waiting != nil {
		return s.State.Waiting.Reason
	}
	return ""
}
