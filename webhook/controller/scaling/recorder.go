package scaling

import (
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

const (
	// backoff is how long after a failed pod another one of the same Workspace is a retry.
	backoff = 10 * time.Minute
	// mostNews bounds what waits for the next step: no cluster starts so many pods in half a minute.
	mostNews = 100_000
)

// news is a start that has come, or what became of it.
type news struct {
	pool string
	pod  types.UID
	// at is when the pod was created.
	at time.Time
	// judged tells that found is known.
	judged, found bool
}

// recorder notes the starts of pools: package starts tells it of all Workspace pods. A Workspace that is started again counts
// again; the retry of a pod that has failed does not, nor what belongs to no pool.
type recorder struct {
	source func() *policy.Evaluator
	clock  func(time.Time) time.Time

	mu sync.Mutex
	// counted tells of each pod that is there whether it counts.
	counted map[types.UID]bool
	// failed is when a pod of a Workspace has failed, or was gone before it ran.
	failed map[types.NamespacedName]time.Time
	news   []news
}

func newRecorder(source func() *policy.Evaluator, clock func(time.Time) time.Time) *recorder {
	return &recorder{source: source, clock: clock, counted: map[types.UID]bool{}, failed: map[types.NamespacedName]time.Time{}}
}

// Seen notes a pod that is new.
func (r *recorder) Seen(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if pod.Status.Phase == corev1.PodFailed {
		r.fail(pod)
	}
	if _, known := r.counted[pod.UID]; known {
		return
	}
	e := r.source()
	if e == nil {
		return
	}
	pool := poolOf(e, pod)
	r.counted[pod.UID] = pool != "" && !policy.Ended(pod) && !r.retries(pod)
	if r.counted[pod.UID] {
		r.add(news{pool: pool, pod: pod.UID, at: r.clock(pod.CreationTimestamp.Time)})
	}
}

// Gone forgets a pod.
func (r *recorder) Gone(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !hasRun(pod) {
		r.fail(pod)
	}
	delete(r.counted, pod.UID)
}

// Started notes what became of a start.
func (r *recorder) Started(pod *corev1.Pod, pool string, found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counted[pod.UID] {
		r.add(news{pool: pool, pod: pod.UID, at: r.clock(pod.CreationTimestamp.Time), judged: true, found: found})
	}
}

// take gives what is new, in the order of time.
func (r *recorder) take(now time.Time) []news {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.news
	r.news = nil
	maps.DeleteFunc(r.failed, func(_ types.NamespacedName, at time.Time) bool { return now.Sub(at) > backoff || at.Sub(now) > backoff })
	slices.SortStableFunc(all, func(a, b news) int { return a.at.Compare(b.at) })
	return all
}

func (r *recorder) add(n news) {
	if len(r.news) < mostNews {
		r.news = append(r.news, n)
	}
}

func (r *recorder) fail(pod *corev1.Pod) {
	if workspace := workspaceOf(pod); workspace.Name != "" {
		r.failed[workspace] = r.clock(time.Now())
	}
}

func (r *recorder) retries(pod *corev1.Pod) bool {
	at, failed := r.failed[workspaceOf(pod)]
	return failed && r.clock(pod.CreationTimestamp.Time).Sub(at) <= backoff
}

// workspaceOf is the Workspace of a pod; without a name where its labels do not tell.
func workspaceOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[config.WorkspaceLabel]}
}

func hasRun(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil
	})
}

// poolOf is the pool whose demand a pod is; empty: none, or its own node selection leaves out all nodes of the pool.
func poolOf(e *policy.Evaluator, pod *corev1.Pod) string {
	pool := e.Pools().ForPodIn(pod.Namespace, pod.Labels, &pod.Spec).Pool
	if pool == nil || pool.Fit(&pod.Spec).Conflict {
		return ""
	}
	return pool.Config.Name
}
