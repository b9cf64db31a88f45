package warmfirst_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// creators create pods at once, so that the scheduler and not the creation is what is waited for.
const creators = 16

// TestThroughput takes the time in which many Workspaces are bound, without and with the preference, in turn.
func TestThroughput(t *testing.T) {
	l := newLab(t)
	s := &scenario{name: "throughput", warm: 20}
	count, rounds := 100, 1
	if *long {
		s.warm, count = 200, 1000
	}
	if *update {
		rounds = 5
	}
	l.open(t, s)
	l.warm(t, s, 0)
	var without, with []time.Duration
	for round := range rounds {
		without = append(without, l.bindAll(t, s, 2*round, count, false))
		with = append(with, l.bindAll(t, s, 2*round+1, count, true))
	}
	rate := func(times []time.Duration) float64 {
		slices.Sort(times)
		return float64(count) / times[len(times)/2].Seconds()
	}
	slow, fast := rate(with), rate(without)
	line := fmt.Sprintf("%d Workspaces beside %d placeholders, median of %d: %.0f bound a second without the preference, %.0f with it (%.2f ×).\n",
		count, s.warm, rounds, fast, slow, slow/fast)
	t.Log(line)
	if *update {
		write(t, "throughput", line)
	}
}

// bindAll creates the Workspaces of a round and waits until all have a node; then it deletes them.
func (l *lab) bindAll(t *testing.T, s *scenario, round, count int, prefer bool) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	start := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for i := range count {
		pod := workspace(s, round, i, images[0], prefer)
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2") // 7 fit beside a placeholder
		pod.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("2")
		group.Go(func() error { return l.Create(ctx, pod) })
	}
	require.NoError(t, group.Wait())
	l.wait(t, "all Workspaces have a node", func() bool {
		var list corev1.PodList
		require.NoError(t, l.List(t.Context(), &list, client.InNamespace(team), client.MatchingLabels{"workspace": s.name}, client.MatchingFields{"spec.nodeName": ""}, client.Limit(1)))
		return len(list.Items) == 0
	})
	took := time.Since(start)
	l.clear(t, s)
	return took
}
