package simulation

import (
	"cmp"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Paths on which a Workspace comes to its node.
const (
	Coexist = "coexist" // beside a placeholder that has pulled its image there
	Preempt = "preempt" // in the place of one that had
	Cold    = "cold"    // anywhere else
)

// Startup is how one pod of a Workspace came to run. It does not go by anything that warmpool says.
type Startup struct {
	Workspace string `json:"workspace"`
	Kind      string `json:"kind"`
	Image     string `json:"image"`
	Pod       string `json:"pod"`
	Node      string `json:"node"`
	// Created, Bound and Running are when these were seen; zero until then.
	Created time.Time `json:"created"`
	Bound   time.Time `json:"bound"`
	Running time.Time `json:"running"`
	Path    string    `json:"path"`
	// Pulled says that the image was not on the node when the pod came.
	Pulled bool `json:"pulled"`
	// Booted says that the node was not there when the Workspace was created.
	Booted bool `json:"booted"`
	// Outside says that the node is not of the pool of its kind.
	Outside bool `json:"outside"`
	// OnWarm says that a placeholder on the node had pulled what it was to pull.
	OnWarm bool `json:"onWarm"`
}

// Warm says that the Workspace found a node that was there and had its image.
func (s *Startup) Warm() bool { return !s.Pulled && !s.Booted }

// Eviction is a pod that had to make room.
type Eviction struct {
	Pod  string `json:"pod"`
	Node string `json:"node"`
	// Workspace is its name, empty for a placeholder or anything else.
	Workspace string `json:"workspace,omitempty"`
	// Reason is that of the condition DisruptionTarget, such as PreemptionByScheduler.
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// Node is the time of a machine.
type Node struct {
	Name string `json:"name"`
	Pool string `json:"pool"`
	// Began is when it was ordered: a boot before it was seen. Gone is zero while it is there.
	Began time.Time `json:"began"`
	Ready time.Time `json:"ready"`
	Gone  time.Time `json:"gone"`
}

// stay is the time of a placeholder on a node.
type stay struct {
	kind      string
	images    []string
	node      string
	done      time.Time // when it had pulled them
	gone      time.Time
	preempted bool
}

func (s *stay) there(at time.Time) bool { return s.gone.IsZero() || s.gone.After(at) }

// Book keeps what has happened. It may be read at any time.
type Book struct {
	mu     sync.Mutex
	boot   time.Duration
	starts []*Startup
	byPod  map[types.UID]*Startup
	stays  map[types.UID]*stay
	nodes  map[string]*Node
	events []Eviction
}

func newBook(boot time.Duration) *Book {
	return &Book{boot: boot, byPod: map[types.UID]*Startup{}, stays: map[types.UID]*stay{}, nodes: map[string]*Node{}}
}

// Startups are those of all pods of Workspaces, in the order of their creation; some may not run yet.
func (b *Book) Startups() []Startup {
	b.mu.Lock()
	defer b.mu.Unlock()
	starts := make([]Startup, 0, len(b.starts))
	for _, start := range b.starts {
		starts = append(starts, *start)
	}
	return starts
}

// Evictions are the pods that had to make room, in their order.
func (b *Book) Evictions() []Eviction {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.events)
}

// Nodes are all that there were, by the time when they began.
func (b *Book) Nodes() []Node {
	b.mu.Lock()
	defer b.mu.Unlock()
	nodes := make([]Node, 0, len(b.nodes))
	for _, node := range b.nodes {
		nodes = append(nodes, *node)
	}
	slices.SortFunc(nodes, func(x, y Node) int { return cmp.Or(x.Began.Compare(y.Began), cmp.Compare(x.Name, y.Name)) })
	return nodes
}

// Hours are the node-hours between two times, by NodePool.
func (b *Book) Hours(from, to time.Time) map[string]float64 {
	hours := map[string]float64{}
	for _, node := range b.Nodes() {
		began, gone := node.Began, node.Gone
		if began.Before(from) {
			began = from
		}
		if gone.IsZero() || gone.After(to) {
			gone = to
		}
		hours[node.Pool] += max(0, gone.Sub(began)).Hours()
	}
	return hours
}

// Synced reports whether all placeholders of a kind that have a node have pulled an image, and at least one has.
func (b *Book) Synced(kind, image string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	count := 0
	for _, s := range b.stays {
		if s.kind != kind || !s.gone.IsZero() {
			continue
		}
		if s.done.IsZero() || !slices.Contains(s.images, image) {
			return false
		}
		count++
	}
	return count > 0
}

func (b *Book) last(workspace string) (Startup, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, start := range slices.Backward(b.starts) {
		if start.Workspace == workspace {
			return *start, true
		}
	}
	return Startup{}, false
}

// warm counts the placeholders of a kind that have pulled an image.
func (b *Book) warm(kind, image string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	count := 0
	for _, s := range b.stays {
		if s.kind == kind && !s.done.IsZero() && s.gone.IsZero() && slices.Contains(s.images, image) {
			count++
		}
	}
	return count
}

// path reports how a pod has come to a node, and whether a placeholder there had pulled what it was to.
func (b *Book) path(s *Startup) (path string, onWarm bool) {
	path = Cold
	for _, stay := range b.stays {
		if stay.node != s.Node || stay.done.IsZero() || stay.gone.Before(s.Created) && !stay.gone.IsZero() {
			continue
		}
		beside := stay.there(s.Bound)
		if !beside && !stay.preempted {
			continue
		}
		onWarm = true
		switch {
		case !slices.Contains(stay.images, s.Image):
		case beside:
			path = Coexist
		case path == Cold:
			path = Preempt
		}
	}
	return path, onWarm
}

// Near reports whether a placeholder on the node of a start had pulled its images, or left, within a time of the Workspace's
// creation or binding.
func (b *Book) Near(s *Startup, within time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, stay := range b.stays {
		if stay.node != s.Node {
			continue
		}
		for _, at := range []time.Time{stay.done, stay.gone} {
			if at.Sub(s.Created).Abs() <= within || at.Sub(s.Bound).Abs() <= within {
				return true
			}
		}
	}
	return false
}

func podKind(pod *corev1.Pod) string {
	if pod.Namespace == Placeholders {
		return pod.Labels["type"]
	}
	return pod.Labels[templateLabel]
}
