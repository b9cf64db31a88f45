package faults_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/await"
)

const (
	// pace is the time from one pod to the next.
	pace = 50 * time.Millisecond
	// inWork bounds the pods that wait for an answer, as the workers of a controller do.
	inWork = 20
)

const (
	gpu       = corev1.ResourceName("nvidia.com/gpu")
	dedicated = "dedicated" // taint that the NodePool alone declares
)

// workspacePod asks for a GPU, and so for a place in the pool gpu.
func workspacePod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", GenerateName: "workspace-alpha-6d4d47769d-",
			Labels: map[string]string{"app": "jupyter", "workspace.jupyter.org/workspace-name": "alpha"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "workspace", Image: "public.ecr.aws/sagemaker/sagemaker-distribution:3.2.0-gpu",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{gpu: resource.MustParse("1")}},
		}}},
	}
}

var (
	errUnplaced = errors.New("created, but not placed")
	errTwice    = errors.New("placed twice")
)

// placed reports whether a pod can run in its pool and nowhere else: node affinity in every term, and the device's taint; each
// once.
func placed(pod *corev1.Pod) error {
	required := func() *corev1.NodeSelector {
		if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
			return nil
		}
		return pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}()
	if required == nil || len(required.NodeSelectorTerms) == 0 || !tolerates(pod, string(gpu)) {
		return errUnplaced
	}
	for _, term := range required.NodeSelectorTerms {
		if !slices.ContainsFunc(term.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool {
			return r.Key == "karpenter.sh/nodepool" && r.Operator == corev1.NodeSelectorOpIn && slices.Equal(r.Values, []string{"spaces-gpu"})
		}) {
			return errUnplaced
		}
		if len(term.MatchExpressions) > 1 {
			return errTwice
		}
	}
	seen := map[corev1.Toleration]bool{}
	for _, toleration := range pod.Spec.Tolerations {
		toleration.TolerationSeconds = nil // a pointer
		if seen[toleration] {
			return errTwice
		}
		seen[toleration] = true
	}
	return nil
}

func tolerates(pod *corev1.Pod, key string) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == key })
}

// load creates Workspace pods at a steady pace and notes what becomes of each.
type load struct {
	admin  client.Client
	cancel context.CancelFunc
	began  time.Time
	pods   sync.WaitGroup
	mu     sync.Mutex
	marks  []time.Time
	all    []answer // in the order of their times
}

// answer is what the API server said of one pod; err is nil for a pod that was created and placed.
type answer struct {
	at  time.Time
	err error
	// partly is a pod that lacks the toleration of the NodePool's own taint.
	partly bool
}

func (c *cluster) startLoad(t *testing.T) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{admin: c.admin, cancel: cancel, began: time.Now()}
	l.pods.Go(func() {
		var group errgroup.Group
		group.SetLimit(inWork)
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			group.Go(func() error {
				l.note(l.create(t.Context()))
				return nil
			})
		}
		_ = group.Wait() // each has been noted
	})
	l.steady(t)
	return l
}

// create creates a pod, again and again until the API server has an answer: one that is down or has just begun has none.
func (l *load) create(ctx context.Context) (*corev1.Pod, error) {
	for {
		pod := workspacePod()
		err := l.admin.Create(ctx, pod)
		if status := apierrors.APIStatus(nil); err == nil || errors.As(err, &status) && !starting(status.Status()) {
			return pod, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(pace):
		}
	}
}

func starting(s metav1.Status) bool {
	return s.Code == http.StatusServiceUnavailable || strings.Contains(s.Message, "not yet ready to handle request")
}

func (l *load) note(pod *corev1.Pod, err error) {
	a := answer{err: err}
	if err == nil {
		a.err, a.partly = placed(pod), !tolerates(pod, dedicated)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a.at = time.Now()
	l.all = append(l.all, a)
}

// mark says that a fault begins now.
func (l *load) mark() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marks = append(l.marks, time.Now())
}

// steady waits until pods have been placed for a second, one after another.
func (l *load) steady(t *testing.T) {
	t.Helper()
	since := time.Now()
	await.NoError(t, limit, "pods are placed", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		good := 0
		for _, a := range slices.Backward(l.all) {
			if a.err != nil || a.at.Before(since) {
				break
			}
			good++
		}
		if want := int(time.Second / pace); good < want {
			return fmt.Errorf("%d of %d", good, want)
		}
		return nil
	})
}

// until waits for an answer of some kind from now on.
func (l *load) until(t *testing.T, what string, is func(answer) bool) {
	t.Helper()
	since := time.Now()
	await.NoError(t, limit, what, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !slices.ContainsFunc(l.all, func(a answer) bool { return a.at.After(since) && is(a) }) {
			return errors.New("no such answer")
		}
		return nil
	})
}

// partly is the number of pods that lack the toleration of the NodePool's own taint.
func (l *load) partly() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	count := 0
	for _, a := range l.all {
		if a.partly {
			count++
		}
	}
	return count
}

// figures of one fault.
type figures struct {
	requests, failed, unplaced int
	// gap is the longest time between two pods that were placed.
	gap time.Duration
	// recovery is the longest time from the beginning of a fault to the first pod that was placed after the last that was
	// not; 0 where each was.
	recovery time.Duration
	failures []string // sorted, without repetitions
}

// end stops the load when it is steady again.
func (l *load) end(t *testing.T) figures {
	t.Helper()
	l.steady(t)
	l.cancel()
	l.pods.Wait()
	require.NotEmpty(t, l.marks, "no fault was marked")
	f := figures{requests: len(l.all)}
	last, begun, bad := l.began, l.began, false
	for _, a := range l.all {
		for len(l.marks) > 0 && l.marks[0].Before(a.at) {
			begun, l.marks = l.marks[0], l.marks[1:]
		}
		switch {
		case a.err == nil:
			f.gap = max(f.gap, a.at.Sub(last))
			if bad {
				f.recovery = max(f.recovery, a.at.Sub(begun))
			}
			last, bad = a.at, false
		case errors.Is(a.err, errUnplaced):
			f.unplaced++
			bad = true
		default:
			f.failed++
			bad = true
			f.failures = append(f.failures, a.err.Error())
		}
	}
	slices.Sort(f.failures)
	f.failures = slices.Compact(f.failures)
	return f
}
