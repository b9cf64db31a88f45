package scaling

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"warmpool.sh/webhook/demand"
)

// A day at the NodePool's limit: what has no node is not asked for, and hardly anything is written.
func TestLimitForADay(t *testing.T) {
	inBubble(t, "{mode: Apply, min: 1, max: 60}", one, func(r *rig) {
		r.knows(learned(40, time.Now()))
		r.most = 3
		r.pass(time.Hour)
		assert.Equal(t, 3, r.replicas())
		assert.Equal(t, 3, r.warm())
		assert.Contains(t, r.events[len(r.events)-1], "PoolHeld")
		assert.Contains(t, r.events[len(r.events)-1], "placeholders have 1 node, and the limits of NodePool np leave 2 nodes more")
		for range 3 {
			r.start()
		}
		r.pass(24 * time.Hour)
		assert.Equal(t, 0, r.replicas(), "Workspaces have all nodes")
		assert.Empty(t, r.pods, "none is Pending")
		assert.LessOrEqual(t, len(r.scales), 6)
		held := 0
		for _, event := range r.events {
			if assert.NotContains(t, event, "pending"); event[6:14] == "PoolHeld" {
				held++
			}
		}
		assert.LessOrEqual(t, held, 25, "once an hour")
		r.end()
		r.pass(9 * time.Hour)
		assert.Equal(t, 3, r.warm(), "the next morning")
		r.spaced()
	})
}

// The cloud has no more nodes, which no limit tells: after a while the pool is what has a node, and more are asked for now and then.
func TestNodesDoNotCome(t *testing.T) {
	inBubble(t, "{mode: Apply, min: 1, max: 60}", one, func(r *rig) {
		r.knows(learned(40, time.Now()))
		r.scarce = 2
		r.pass(75 * time.Minute)
		assert.Equal(t, 2, r.replicas())
		assert.Contains(t, fmt.Sprint(r.events), "placeholders got no node for 12m0s though no limit forbids one; asked for again at")
		writes := len(r.scales)
		r.pass(6 * time.Hour)
		assert.LessOrEqual(t, len(r.scales)-writes, 14)
		lead, _ := r.controller.pools["cpu"].demand.LeadTime(r.controller.pools["cpu"].settings)
		assert.Less(t, lead, 15*time.Minute, "who waits for the cloud does not tell how long a node takes")
		r.scarce = 0
		r.pass(75 * time.Minute)
		assert.Greater(t, r.warm(), 3)
		r.spaced()
	})
}

// A CPA that is installed while warmpool sizes the pool has it for itself, and so has an HPA.
func TestOtherScalers(t *testing.T) {
	inBubble(t, "{mode: Apply, min: 2, max: 60}", one, func(r *rig) {
		r.pass(2 * time.Minute)
		require.Equal(t, 2, r.replicas())
		cpa := r.deployment("cpa", nil)
		cpa.Spec.Template.Spec.Containers = []corev1.Container{{Image: "registry.k8s.io/cpa/cluster-proportional-autoscaler:v1", Args: []string{"--namespace=overprovisioning", "--target=deployment/a", "--configmap=c"}}}
		r.others["cpa"] = cpa
		r.set("a", "cluster-proportional-autoscaler", 5)
		r.pass(24 * time.Hour)
		assert.Equal(t, 5, r.replicas())
		assert.Len(t, r.scales, 1)
		assert.Contains(t, r.events[1], "PoolHeld: pool cpu: 2 placeholders wanted, 5 kept: Deployment overprovisioning/cpa is a Cluster Proportional Autoscaler that scales a: remove it, or size from the pool")
		delete(r.others, "cpa")
		r.evaluator = nil
		r.pass(2 * time.Minute)
		assert.Equal(t, 2, r.replicas())

		r.hpas = []autoscalingv2.HorizontalPodAutoscaler{{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "a"}}}}
		r.hpas[0].Namespace, r.hpas[0].Name = "overprovisioning", "hpa"
		r.set("a", "kube-controller-manager", 7)
		r.pass(24 * time.Hour)
		assert.Equal(t, 7, r.replicas())
		assert.Contains(t, fmt.Sprint(r.events), "HorizontalPodAutoscaler overprovisioning/hpa scales a")
		r.spaced()
	})
}

// Who sets the replicas by hand has them for an hour, whichever replica leads, and 0 is a pause until somebody ends it. A tool that
// puts them back each time is written against once an hour.
func TestSomebodyElseScales(t *testing.T) {
	inBubble(t, "{mode: Apply, min: 2, max: 60}", one, func(r *rig) {
		r.pass(5 * time.Minute)
		r.set("a", "kubectl", 6)
		r.pass(30 * time.Minute)
		r.lead0()
		r.pass(25 * time.Minute)
		assert.Equal(t, 6, r.replicas())
		assert.Contains(t, r.events[1], "kubectl has set the replicas of a to 6 at 07:05; they are left alone until 08:05 UTC")
		r.pass(10 * time.Minute)
		assert.Equal(t, 2, r.replicas())

		r.set("a", "kubectl", 0)
		r.pass(30 * time.Hour)
		assert.Equal(t, 0, r.replicas())
		assert.Contains(t, r.events[len(r.events)-1], "kubectl has set the replicas of a to 0, which pauses it")
		r.set("a", "kubectl", 1)
		r.pass(62 * time.Minute)
		assert.Equal(t, 2, r.replicas())

		writes := len(r.scales)
		for range 6 * 60 { // a tool that is sure of itself
			if r.replicas() == 2 {
				r.set("a", "argocd-controller", 3)
			}
			r.pass(time.Minute)
		}
		assert.LessOrEqual(t, len(r.scales)-writes, 6)
		r.spaced()
	})
}

// A leader that ends in the middle of a resize: the next one goes on, and keeps the distance between writes.
func TestLeaderEnds(t *testing.T) {
	inBubble(t, "{mode: Apply, min: 6, max: 9}", []string{"a", "b", "c"}, func(r *rig) {
		r.pass(30 * time.Second)
		r.controller.step(t.Context())
		require.Len(t, r.scales, 1)
		time.Sleep(time.Second)
		r.lead0()
		r.pass(2 * time.Minute)
		assert.Equal(t, 6, r.replicas())
		r.spaced()
	})
}

// The next leader knows what the one before knew, and counts nothing twice.
func TestLeaderGoesOn(t *testing.T) {
	inBubble(t, "{mode: Apply, min: 1, max: 9}", one, func(r *rig) {
		r.pass(10 * time.Minute)
		for range 10 {
			r.start()
			r.pass(30 * time.Second)
		}
		r.controller.end(t.Context())
		starts := func() float64 { p := r.controller.pools["cpu"].demand; return float64(p.Hour.Starts) }
		before := starts()
		pods := r.pods
		r.lead0()
		r.pods = pods
		r.pass(time.Minute)
		assert.InDelta(t, before, starts(), 0.01)
		r.controller.Seen(workspace("old", time.Now().Add(-5*time.Minute)))
		r.controller.Seen(workspace("new", time.Now()))
		r.pass(time.Minute)
		assert.InDelta(t, before+1, starts(), 0.01, "the old one was counted")
		r.spaced()
	})
}

// What is kept may be gone, damaged, or from a newer warmpool, which stays as it is.
func TestConfigMap(t *testing.T) {
	const newer = `{"version": 9, "starts": "otherwise"}`
	for name, c := range map[string]struct {
		text, log string
	}{
		"damaged": {`{"version": 1, "starts": [`, "learned anew"},
		"newer":   {newer, "written by a newer warmpool"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "{mode: Apply, min: 2, max: 9}", one, func(r *rig) {
				r.configMap = &corev1.ConfigMap{Data: map[string]string{"cpu": c.text, "gone": newer}}
				r.configMap.ResourceVersion = "1"
				r.pass(10 * time.Minute)
				assert.Equal(t, 2, r.replicas())
				require.NotEmpty(t, r.logs)
				assert.Contains(t, r.logs[0], c.log)
				assert.Equal(t, newer, r.configMap.Data["gone"])
				assert.Equal(t, name == "newer", r.configMap.Data["cpu"] == c.text)
			})
		})
	}
	inBubble(t, "{mode: Apply, min: 2, max: 9}", one, func(r *rig) {
		r.knows(learned(12, time.Now()))
		r.pass(5 * time.Minute)
		r.configMap = nil
		r.pass(2 * time.Minute)
		require.NotNil(t, r.configMap)
		state, err := demand.Read(r.configMap.Data, time.Now())
		require.NoError(t, err)
		assert.False(t, state.Pools["cpu"].Learning(&demand.Settings{Objective: 0.95}), "it is written again with all that is known")
		r.spaced()
	})
}

// A clock that jumps costs neither a storm of writes nor the pool.
func TestClockJumps(t *testing.T) {
	inBubble(t, "{mode: Apply, min: 2, max: 9}", one, func(r *rig) {
		offset := time.Duration(0)
		r.controller.clock = func(t time.Time) time.Time { return t.Add(offset) }
		r.knows(learned(12, time.Now()))
		r.pass(2 * time.Hour)
		for _, jump := range []time.Duration{3 * time.Hour, -20 * time.Hour, 300 * 24 * time.Hour, -5 * 365 * 24 * time.Hour, 0} {
			before := len(r.scales)
			offset = jump
			r.pass(30 * time.Minute)
			assert.LessOrEqual(t, len(r.scales)-before, 5, "%s", jump)
			assert.GreaterOrEqual(t, r.replicas(), 2)
			assert.LessOrEqual(t, r.replicas(), 9)
		}
		r.spaced()
	})
}

// An API server that refuses everything gets a request a step, and nothing breaks.
func TestNothingMayBeWritten(t *testing.T) {
	inBubble(t, "{mode: Apply, min: 2, max: 9}", one, func(r *rig) {
		r.fails = apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "a", nil)
		r.pass(10 * time.Minute)
		assert.Equal(t, 1, r.replicas())
		assert.NotEmpty(t, r.logs)
		assert.Less(t, len(r.logs), 8)
		r.fails = nil
		r.pass(2 * time.Minute)
		assert.Equal(t, 2, r.replicas())
	})
}
