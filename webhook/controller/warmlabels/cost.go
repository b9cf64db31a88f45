package warmlabels

import (
	corev1 "k8s.io/api/core/v1"
)

// A ReplicaSet that scales down deletes the pods of the lowest cost first, and a pod without the annotation costs 0: those
// that are not warm, then those that have their node for themselves, so that the node goes with them, and last those
// beside Workspaces, whose nodes stay anyway.
const (
	costAlone  = "100"
	costBeside = "200"
)

// Occupants reports which nodes have Workspaces.
type Occupants interface {
	// Has reports whether a node has one; known is false while that cannot be told.
	Has(node string) (has, known bool)
	// Version differs when Has may answer otherwise than before.
	Version() uint64
}

// cost is the deletion cost that a pod is to have; empty: none. A cost that warmpool does not write is somebody else's, and
// stays. So does any while nothing tells which nodes have Workspaces.
func cost(pod *corev1.Pod, at state, occupants Occupants) string {
	now := pod.Annotations[corev1.PodDeletionCost]
	if now != "" && now != costAlone && now != costBeside {
		return now
	}
	has, known := occupants.Has(pod.Spec.NodeName)
	switch {
	case at != warm:
		return ""
	case !known:
		return now
	case has:
		return costBeside
	default:
		return costAlone
	}
}

// change is what a pod lacks.
type change struct {
	labels map[string]*string
	// cost is set where the annotation is to change; empty: it goes.
	cost *string
}

func (c change) isEmpty() bool { return len(c.labels) == 0 && c.cost == nil }

// changeOf says what is to be written to a pod.
func (c *Controller) changeOf(pod *corev1.Pod) (state, change) {
	at, wanted := decide(pod)
	what := change{labels: difference(pod.Labels, wanted)}
	if cost := cost(pod, at, c.occupants); cost != pod.Annotations[corev1.PodDeletionCost] {
		what.cost = &cost
	}
	return at, what
}
