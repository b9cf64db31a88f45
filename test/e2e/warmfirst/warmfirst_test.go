package warmfirst_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var scenarios = []scenario{
	{name: "coexist", what: "Coexist: 1 warm node, 1 empty", warm: 1, empty: 1},
	{name: "mixed", what: "Coexist: 10 nodes, 3 warm with one image and 2 with another, 2 still pulling, 3 empty", warm: 3, others: 2, pulling: 2, empty: 3},
	{name: "zones", what: "Coexist: 9 GPU nodes in 3 zones, in each 2 warm and 1 empty; the Workspace is bound to a zone", warm: 6, empty: 3, gpu: true, zonal: true},
	{name: "preempt", what: "Preempt: 1 warm node, 1 still pulling", warm: 1, pulling: 1, exclusive: true},
	{name: "preempt-gpu", what: "Preempt: 10 GPU nodes, 4 warm, 6 still pulling", warm: 4, pulling: 6, exclusive: true, gpu: true},
	{name: "burst", what: "Coexist: 10 Workspaces at once, 5 warm nodes with room for 2 each, 3 still pulling", warm: 5, pulling: 3, burst: 10},
	{name: "burst-preempt", what: "Preempt: 10 Workspaces at once, 5 warm nodes, 3 still pulling: the first 5", warm: 5, pulling: 3, burst: 10, exclusive: true},
	{name: "none", what: "Coexist: no warm node, 2 still pulling, 1 empty: the Workspace starts", pulling: 2, empty: 1},
	{name: "none-preempt", what: "Preempt: no warm node, 3 still pulling: the Workspace starts", pulling: 3, exclusive: true},
}

// TestWarmFirst runs each scenario without and with the preference and the budget.
func TestWarmFirst(t *testing.T) {
	l := newLab(t)
	rows := make([]string, len(scenarios))
	t.Run("scenarios", func(t *testing.T) {
		for i := range scenarios {
			s := &scenarios[i]
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				l.open(t, s)
				without, of := l.count(t, s, 0, false)
				l.budget(t, s)
				with, _ := l.count(t, s, runs(), true)
				assert.Equal(t, of, with, "every Workspace lands on a warm node, or starts where there is none")
				if s.warm > 0 && s.burst == 0 {
					assert.Less(t, without, of, "the scheduler does so by itself: nothing is needed")
				}
				rows[i] = fmt.Sprintf("| %s | %d of %d | %d of %d |", s.what, without, of, with, of)
			})
		}
	})
	if t.Failed() {
		return
	}
	table := "| | Without | With warmpool |\n|---|--:|--:|\n" + strings.Join(rows, "\n") + "\n"
	t.Log("\n" + table)
	if *update {
		write(t, "warm first", table)
	}
}

// count runs a scenario and counts the Workspaces that land on a warm node, of those that could.
func (l *lab) count(t *testing.T, s *scenario, first int, warmFirst bool) (hits, of int) {
	t.Helper()
	for run := first; run < first+runs(); run++ {
		warm := l.warm(t, s, run)
		image := images[0]
		if s.others > 0 {
			image = images[run%2]
		}
		landed := l.land(t, s, run, image, warmFirst)
		for _, node := range landed {
			if slices.Contains(warm[image], node) || s.warm == 0 {
				hits++
			}
		}
		of += len(landed)
		l.clear(t, s)
	}
	return hits, of
}

// land creates the Workspaces of a run and gives the nodes that they get, in the order in which they get them: as many as
// there is room for on warm ones.
func (l *lab) land(t *testing.T, s *scenario, run int, image string, prefer bool) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	watch, err := l.Watch(ctx, &corev1.PodList{}, client.InNamespace(team), client.MatchingLabels{"workspace": s.name})
	require.NoError(t, err)
	defer watch.Stop()
	wanted := max(s.burst, 1)
	if s.burst > 0 && s.exclusive {
		wanted = s.warm
	}
	for i := range max(s.burst, 1) {
		l.create(t, workspace(s, run, i, image, prefer))
	}
	var nodes []string
	seen := map[string]bool{}
	for event := range watch.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		require.True(t, ok, "%v", event.Object)
		if pod.Spec.NodeName != "" && !seen[pod.Name] {
			seen[pod.Name] = true
			nodes = append(nodes, pod.Spec.NodeName)
		}
		if len(nodes) == wanted {
			return nodes
		}
	}
	require.Fail(t, "not all Workspaces got a node", "%d of %d", len(nodes), wanted)
	return nil
}

// write puts the text between its markers in docs/warm-first.md.
func write(t *testing.T, name, text string) {
	t.Helper()
	const document = "../../../docs/warm-first.md"
	begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->\n"
	all, err := os.ReadFile(document)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(all), begin)
	require.True(t, found, begin)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found, end)
	require.NoError(t, os.WriteFile(document, []byte(before+begin+text+end+after), 0o600))
}
