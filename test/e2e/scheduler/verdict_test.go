package scheduler_test

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/sizing"
)

// decision is what the scheduler made of a pod.
type decision struct {
	node         string // empty: it fits nowhere
	insufficient []corev1.ResourceName
	message      string
}

// decide creates the pod, waits for the scheduler, and removes the pod again. The scheduler sees the removal before any
// later pod: both come by one watch. The pod is as the API server completed it then.
func (c *testCluster) decide(t *testing.T, pod *corev1.Pod) decision {
	t.Helper()
	require.NoError(t, c.admin.Create(t.Context(), pod))
	defer c.remove(t, pod)
	return c.await(t, pod)
}

func (c *testCluster) await(t *testing.T, pod *corev1.Pod) decision {
	t.Helper()
	var got decision
	err := wait.PollUntilContextTimeout(t.Context(), step, limit, true, func(ctx context.Context) (bool, error) {
		var now corev1.Pod
		if err := c.admin.Get(ctx, client.ObjectKeyFromObject(pod), &now); err != nil {
			return false, err
		}
		for _, condition := range now.Status.Conditions {
			if condition.Type != corev1.PodScheduled {
				continue
			}
			if condition.Status == corev1.ConditionTrue {
				got = decision{node: now.Spec.NodeName}
				return true, nil
			}
			if condition.Reason == corev1.PodReasonUnschedulable {
				got = decision{message: condition.Message, insufficient: insufficient(condition.Message)}
				return true, nil
			}
		}
		return false, nil
	})
	require.NoError(t, err, "the scheduler decides on %s", client.ObjectKeyFromObject(pod))
	return got
}

func (c *testCluster) remove(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // it may run as a cleanup
	require.NoError(t, client.IgnoreNotFound(c.admin.Delete(ctx, pod, client.GracePeriodSeconds(0))))
	err := wait.PollUntilContextTimeout(ctx, step, limit, true, func(ctx context.Context) (bool, error) {
		err := c.admin.Get(ctx, client.ObjectKeyFromObject(pod), &corev1.Pod{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	require.NoError(t, err, "%s goes away", client.ObjectKeyFromObject(pod))
}

var insufficientIn = regexp.MustCompile(`Insufficient [^\s,]+|Too many pods`)

// insufficient reads the resources out of the scheduler's message, sorted.
func insufficient(message string) []corev1.ResourceName {
	var names []corev1.ResourceName
	for _, found := range insufficientIn.FindAllString(message, -1) {
		name := corev1.ResourcePods
		if of, ok := strings.CutPrefix(found, "Insufficient "); ok {
			name = corev1.ResourceName(strings.TrimSuffix(of, "."))
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func resourcesOf(short []sizing.Shortfall) []corev1.ResourceName {
	var names []corev1.ResourceName
	for _, s := range short {
		names = append(names, s.Resource)
	}
	return names
}

// line is one comparison.
type line struct {
	node, template string
	resource       corev1.ResourceName
	available      resource.Quantity
	target         target
	sizing         []corev1.ResourceName // of which there is too little
	scheduler      decision
	agree          bool
}

// ledger collects the comparisons of tests that run in parallel.
type ledger struct {
	mu    sync.Mutex
	lines []line
}

func (l *ledger) add(entry line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, entry)
}

func (l *ledger) table() string {
	slices.SortStableFunc(l.lines, func(a, b line) int {
		return cmp.Or(strings.Compare(a.node, b.node), strings.Compare(a.template, b.template))
	})
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	row := func(columns ...string) { _, _ = fmt.Fprintln(w, strings.Join(columns, "\t")) } // a Builder takes everything
	row("NODE", "TEMPLATE", "RESOURCE", "AVAILABLE", "REQUEST", "SIZING", "SCHEDULER", "")
	for _, e := range l.lines {
		note := ""
		if !e.agree {
			note = "DISAGREE"
		}
		row(e.node, e.template, string(e.resource), e.available.String(), e.target.name+" "+e.target.effective.String(),
			verdict(len(e.sizing) == 0, e.sizing), verdict(e.scheduler.node != "", e.scheduler.insufficient), note)
	}
	_ = w.Flush()
	return text.String()
}

func verdict(fits bool, short []corev1.ResourceName) string {
	if fits {
		return "fits"
	}
	return fmt.Sprintf("too little %s", short)
}
