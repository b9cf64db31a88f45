package starts

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/prepull"
)

// remembered is how long a placeholder that has left its node is kept in mind: a pull takes minutes, and only when it is
// over does a Workspace count as started.
const remembered = 30 * time.Minute

// stay is the time of one placeholder pod on a node.
type stay struct {
	pod    types.UID
	images map[string]time.Time // when it had pulled an image there, by the key of the image's label
	since  time.Time            // zero when it was there at the first look
	until  time.Time            // zero while it is there
}

func (s *stay) left() bool { return !s.until.IsZero() }

// has tells whether the placeholder had pulled the image at the time.
func (s *stay) has(image string, at time.Time) bool {
	pulled, found := s.images[prepull.ImageLabel(image)]
	return found && !pulled.After(at)
}

// history is which placeholders were on which node.
type history struct {
	mu     sync.Mutex
	byNode map[string][]stay
	node   map[types.UID]string // of those that are there
	looked bool
}

func newHistory() *history {
	return &history{byNode: map[string][]stay{}, node: map[types.UID]string{}}
}

// observe takes down who is where now. A pod that is about to end counts as gone.
func (h *history) observe(pods cluster.Facts[corev1.Pod], now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	gone := h.node
	h.node = make(map[types.UID]string, len(gone))
	for _, pod := range pods.All() {
		if pod.Spec.NodeName == "" || policy.Ended(pod) {
			continue
		}
		h.node[pod.UID] = pod.Spec.NodeName
		delete(gone, pod.UID)
		h.arrive(pod, now)
	}
	for uid, node := range gone {
		h.leave(uid, node, now)
	}
	h.forget(now.Add(-remembered))
	h.looked = true
}

func (h *history) arrive(pod *corev1.Pod, now time.Time) {
	if !h.looked {
		now = time.Time{} // no one knows since when
	}
	stays := h.byNode[pod.Spec.NodeName]
	i := slices.IndexFunc(stays, func(s stay) bool { return s.pod == pod.UID })
	if i < 0 {
		i, stays = len(stays), append(stays, stay{pod: pod.UID, since: now})
	}
	stays[i].images, stays[i].until = pulls(pod, stays[i].images, now), time.Time{}
	h.byNode[pod.Spec.NodeName] = stays
}

func (h *history) leave(uid types.UID, node string, now time.Time) {
	for i := range h.byNode[node] {
		if s := &h.byNode[node][i]; s.pod == uid && !s.left() {
			s.until = now
		}
	}
}

func (h *history) forget(before time.Time) {
	for node, stays := range h.byNode {
		stays = slices.DeleteFunc(stays, func(s stay) bool { return s.left() && s.until.Before(before) })
		if h.byNode[node] = stays; len(stays) == 0 {
			delete(h.byNode, node)
		}
	}
}

// on gives the stays on a node.
func (h *history) on(node string) []stay {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.byNode[node])
}

// with gives the nodes on which a placeholder had pulled the image at the time, sorted.
func (h *history) with(image string, at time.Time) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var nodes []string
	for node, stays := range h.byNode {
		if slices.ContainsFunc(stays, func(s stay) bool { return s.has(image, at) && !s.since.After(at) && (!s.left() || s.until.After(at)) }) {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// pulls are the times of a placeholder's images: those known before, else when the container that has it was started, or
// as an init container ended, by the kubelet's clock, else slack before now: it is seen a little late.
func pulls(pod *corev1.Pod, known map[string]time.Time, now time.Time) map[string]time.Time {
	images := map[string]time.Time{}
	for key, value := range pod.Labels {
		if !strings.HasPrefix(key, prepull.ImageLabelPrefix) || value != "true" {
			continue
		}
		at, before := known[key]
		if !before {
			at = cmp.Or(pulledAt(pod, key), now.Add(-slack))
		}
		images[key] = at
	}
	return images
}

// pulledAt is zero where no container tells.
func pulledAt(pod *corev1.Pod, label string) time.Time {
	for i := range pod.Spec.InitContainers {
		container := &pod.Spec.InitContainers[i]
		if prepull.ImageLabel(container.Image) != label {
			continue
		}
		if s := prepull.Status(pod, container.Name); s != nil && s.State.Terminated != nil {
			return s.State.Terminated.FinishedAt.Time
		}
	}
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		if prepull.ImageLabel(container.Image) != label {
			continue
		}
		if s := prepull.Status(pod, container.Name); s != nil && s.State.Running != nil {
			return s.State.Running.StartedAt.Time
		}
	}
	return time.Time{}
}
