package starts

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/policy"
)

// Paths on which a Workspace pod comes to its node.
const (
	pathCoexist = "coexist" // beside a placeholder that has its image
	pathPreempt = "preempt" // in the place of one that had its image
	pathCold    = "cold"    // anywhere else
)

// slack is by how much the API server's times, whole seconds, and ours, taken when a change is seen, may differ.
const slack = 5 * time.Second

// start is how one Workspace pod came to run.
type start struct {
	path string
	// cause is why a start was cold, in few words for a label; empty where it was not.
	cause string
	// note says the same to a reader.
	note string
	// took is from the pod's creation to the start of its container, in whole seconds.
	took time.Duration
}

// Causes of cold starts.
const (
	causeNotPulled = "image-not-pulled" // the node has a placeholder, which has not pulled the image
	causeNoWarm    = "no-warm-node"     // no node had the image
	causeZone      = "zone"             // nodes in other zones had it
	causeOwnNodes  = "own-nodes"        // the pod's own node selection leaves out the pool
	causeElsewhere = "other-node"       // a node without a placeholder was taken though others had it
)

// times are when a Workspace pod was bound to its node and when its container began to run there, in whole seconds.
type times struct{ bound, running time.Time }

// begun gives the times of a pod; ok is false while its container does not run.
func begun(pod *corev1.Pod) (at times, ok bool) {
	container := policy.WorkspaceContainer(&pod.Spec)
	if container == nil {
		return times{}, false
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			at.bound = c.LastTransitionTime.Time
		}
	}
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; s.Name == container.Name && s.State.Running != nil {
			at.running = s.State.Running.StartedAt.Time
		}
	}
	return at, pod.Spec.NodeName != "" && !at.bound.IsZero() && !at.running.IsZero()
}

// classify tells how a pod that has begun came to its node.
func classify(pod *corev1.Pod, place place, at times, h *history) start {
	s := start{path: pathCold, took: max(0, at.running.Sub(pod.CreationTimestamp.Time))}
	image := policy.WorkspaceContainer(&pod.Spec).Image
	node := pod.Spec.NodeName
	held, left := false, false
	settled := at.bound.Add(slack)
	for _, stay := range h.on(node) {
		switch {
		case stay.since.After(settled) || stay.left() && stay.until.Before(pod.CreationTimestamp.Time):
			continue
		case stay.left() && !stay.until.After(settled): // it left after the Workspace had come: it has made room
			left = true
			if stay.has(image, at.bound) && s.path == pathCold {
				s.path = pathPreempt
			}
		default:
			held = true
			if stay.has(image, at.bound) { // whatever left at the same time did so for another reason
				s.path = pathCoexist
			}
		}
	}
	switch {
	case s.path != pathCold:
	case held:
		s.cause = causeNotPulled
		s.note = fmt.Sprintf("cold: node %s has a placeholder, which has not pulled %s", node, image)
	case left:
		s.cause = causeNotPulled
		s.note = fmt.Sprintf("cold: node %s had a placeholder, which had not pulled %s", node, image)
	default:
		warm := slices.DeleteFunc(h.with(image, at.bound), func(name string) bool { return !place.has(name) })
		s.cause, s.note = place.coldNode(node, image, warm)
	}
	return s
}

// place is a pool with the nodes of the cluster. The zero one has no node.
type place struct {
	pool  *placement.Pool
	nodes cluster.Facts[corev1.Node]
}

func (p place) name() string {
	if p.pool == nil {
		return ""
	}
	return p.pool.Config.Name
}

// has tells whether a node is one of the pool.
func (p place) has(node string) bool {
	n := p.nodes.Get(node)
	return n != nil && p.pool != nil && p.pool.HasNode(n)
}

// coldNode says why a pod is on a node without a placeholder; warm are the pool's nodes that had the image. It does not name
// them: what is told is told to the user of the pod, and other users' pods may be there.
func (p place) coldNode(node, image string, warm []string) (cause, note string) {
	if len(warm) == 0 {
		return causeNoWarm, fmt.Sprintf("cold: no node of the pool had pulled %s", image)
	}
	zone := zoneOf(p.nodes.Get(node))
	if zone != "" && !slices.ContainsFunc(warm, func(name string) bool { return zoneOf(p.nodes.Get(name)) == zone }) {
		return causeZone, fmt.Sprintf("cold: no warm node in zone %s; %s warm in others", zone, count(len(warm), "node was", "nodes were"))
	}
	return causeElsewhere, fmt.Sprintf("cold: %s warm, and the Workspace took node %s, which has no placeholder", count(len(warm), "node was", "nodes were"), node)
}

func zoneOf(node *corev1.Node) string {
	if node == nil {
		return ""
	}
	return node.Labels[corev1.LabelTopologyZone]
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
