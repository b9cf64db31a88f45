package scenarios_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/await"
	"warmpool.sh/test/harness/needs"
	"warmpool.sh/test/harness/simulation"
)

// The NodePool may have no more nodes, and counts nodes, for those of kwok claim to have no more cores than their first pods
// asked for: Workspaces take the places of placeholders, which wait, and no Workspace ever makes
// room for another.
func (l *lab) limit(t *testing.T) {
	l.begin(t, "cpu", 2)
	l.nodePool(t, "spaces-cpu", `{"limits": {"nodes": "2"}}`)
	t.Cleanup(func() { l.nodePool(t, "spaces-cpu", `{"limits": {"nodes": null}}`) })
	l.counted(t, "cpu", "preempt", "", 1, func() {
		s := l.one(t, simulation.Workspace{Name: "limit-0", Kind: "cpu", CPU: alone}, nil)
		assert.Equal(t, simulation.Preempt, s.Path)
		assert.True(t, s.Warm(), "%+v", s)
	})
	l.onlyPlaceholders(t, 1, preempted)
	await.NoProblem(t, limit, "the audit tells of the limit", func() string {
		told := l.audit(t, "placeholder-stuck")
		if !strings.Contains(told, "wait at the limit of the NodePool, which is normal") {
			return fmt.Sprintf("%d nodes, %d warm, %s", len(l.nodes(t, "cpu")), len(l.warm(t, "cpu")), told)
		}
		return ""
	})
	l.one(t, simulation.Workspace{Name: "limit-1", Kind: "cpu", CPU: alone}, nil)
	l.create(t, simulation.Workspace{Name: "limit-2", Kind: "cpu", CPU: alone}, nil)
	await.NoProblem(t, limit, "Karpenter refuses a node for the third", func() string {
		return l.note(t, "workspace-limit-2-", "node limits have been exhausted")
	})
	l.onlyPlaceholders(t, 2, preempted)
	assert.Empty(t, l.warm(t, "cpu"))
	assert.Len(t, l.placeholders(t, "cpu"), 2)
	assert.Len(t, l.nodes(t, "cpu"), 2)
	l.remove(t, "limit-0")
	third := l.started(t, "limit-2")[0]
	assert.True(t, third.Warm(), "%+v", third)
	l.madeRoom(t, 2, preempted) // a third where a placeholder was faster than the Workspace
}

// audit gives the messages of a rule.
func (l *lab) audit(t *testing.T, rule string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(l.Dir, "warmpool"), "audit", "--kubeconfig="+l.Kubeconfig, "--rule="+rule, "--fail-on=none", "-o=json")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Run(), "%s", &errs)
	var report struct {
		Findings []struct{ Message string }
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &report))
	messages := make([]string, 0, len(report.Findings))
	for _, f := range report.Findings {
		messages = append(messages, f.Message)
	}
	return "findings: " + strings.Join(messages, "\n")
}

// note looks for an Event about a pod; it says what there is instead.
func (l *lab) note(t *testing.T, pod, text string) string {
	t.Helper()
	var list eventsv1.EventList
	require.NoError(t, l.Admin.List(t.Context(), &list, client.InNamespace(simulation.Team)))
	notes := "notes:"
	for i := range list.Items {
		e := &list.Items[i]
		if !strings.HasPrefix(e.Regarding.Name, pod) {
			continue
		}
		if strings.Contains(e.Note, text) {
			return ""
		}
		notes += "\n" + e.Note
	}
	return notes
}

// A drain takes a warm placeholder at once, for no budget covers it, and one that still pulls too: it is not ready. Both
// come back elsewhere.
func (l *lab) drain(t *testing.T) {
	l.begin(t, "cpu", 2)
	nodes := l.warm(t, "cpu")
	drained := []string{nodes[0]}
	l.drainNode(t, nodes[0])
	var second string
	await.NoProblem(t, limit, "the placeholder is on another node", func() string {
		for _, pod := range l.placeholders(t, "cpu") {
			if node := pod.Spec.NodeName; node != "" && node != nodes[1] {
				second = node
				return ""
			}
		}
		return "none is"
	})
	assert.NotEqual(t, nodes[0], second)
	l.drainNode(t, second)
	drained = append(drained, second)
	l.onlyPlaceholders(t, 2, evicted)
	for _, node := range l.refilled(t, "cpu", 2) {
		assert.NotContains(t, drained, node)
	}
	for _, name := range drained {
		pods := l.pods(t, simulation.Placeholders, client.MatchingFields{"spec.nodeName": name})
		assert.Empty(t, pods)
	}
}

func (l *lab) drainNode(t *testing.T, name string) {
	t.Helper()
	began, warm := time.Now(), l.warm(t, "cpu")
	_, _, err := l.Kubectl(t.Context(), "", "drain", name, "--timeout="+limit.String())
	require.NoError(t, err)
	t.Logf("drained in %s, with %d warm placeholders in the pool when it began", time.Since(began).Round(time.Millisecond), len(warm))
	assert.True(t, l.node(t, name).Spec.Unschedulable)
}

// Nights and weekends: without autoscaler and placeholders Karpenter takes the nodes away, and all is warm again when they
// are back.
func (l *lab) zero(t *testing.T) {
	if !*long { // Karpenter looks for empty nodes now and then
		needs.Skip(t, needs.Flag, "make e2e sets -long")
	}
	l.begin(t, "gpu", 2)
	l.nodePool(t, "spaces-gpu", `{"disruption": {"consolidateAfter": "0s"}}`)
	t.Cleanup(func() { l.nodePool(t, "spaces-gpu", `{"disruption": {"consolidateAfter": "15s"}}`) })
	autoscaler := l.cpaOf("gpu")
	require.NoError(t, l.Admin.Get(t.Context(), client.ObjectKeyFromObject(autoscaler), autoscaler))
	require.NoError(t, l.Admin.Delete(t.Context(), autoscaler))
	gone := time.Now()
	await.NoProblem(t, 2*limit, "the nodes are gone", func() string {
		// Again and again: the autoscaler may have had one last word.
		if _, _, err := l.Kubectl(t.Context(), "", "scale", "-n", simulation.Placeholders, "deployment/spaces-placeholder-gpu", "--replicas=0"); err != nil {
			return err.Error()
		}
		if nodes := l.nodes(t, "gpu"); len(nodes) > 0 {
			return nodes[0].Name + " is there"
		}
		return ""
	})
	assert.Empty(t, l.placeholders(t, "gpu"))
	l.onlyPlaceholders(t, 0, "")
	back := time.Now()
	autoscaler.ResourceVersion, autoscaler.UID = "", ""
	require.NoError(t, l.Admin.Create(t.Context(), autoscaler))
	assert.Len(t, l.refilled(t, "gpu", 2), 2)
	t.Logf("gone after %s, warm again after %s", back.Sub(gone).Round(time.Second), time.Since(back).Round(time.Second))
	s := l.one(t, simulation.Workspace{Name: "monday", Kind: "gpu", CPU: 4}, nil)
	assert.Equal(t, simulation.Preempt, s.Path)
	assert.True(t, s.Warm(), "%+v", s)
}

// All of 500 Workspaces find a place on 200 warm nodes, three at most on each, and none is refused.
func (l *lab) many(t *testing.T) {
	if !*long {
		needs.Skip(t, needs.Flag, "make e2e sets -long")
	}
	l.manyWithin(t, 10*limit)
}

// gpu: a Workspace that brings no toleration of its own.
func (l *lab) gpu(t *testing.T) {
	l.begin(t, "gpu", 2)
	nodes := l.warm(t, "gpu")
	for _, name := range nodes {
		assert.Contains(t, l.node(t, name).Spec.Taints, corev1.Taint{Key: "nvidia.com/gpu", Value: "true", Effect: corev1.TaintEffectNoSchedule})
	}
	l.counted(t, "gpu", "preempt", "", 1, func() {
		s := l.one(t, simulation.Workspace{Name: "gpu", Kind: "gpu", CPU: 4}, func(spec *corev1.PodSpec) { spec.Tolerations = nil })
		assert.Equal(t, simulation.Preempt, s.Path)
		assert.True(t, s.Warm(), "%+v", s)
		assert.False(t, s.Outside)
		assert.Contains(t, nodes, s.Node)
		pod := l.podOf(t, s)
		assert.Contains(t, pod.Spec.Tolerations, corev1.Toleration{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
		assert.Equal(t, []string{simulation.PoolPrefix + "gpu"}, poolsOf(pod))
	})
	l.onlyPlaceholders(t, 1, preempted)
	assert.NotEqual(t, nodes, l.refilled(t, "gpu", 2))
}
