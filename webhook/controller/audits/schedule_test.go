package audits

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

// evaluator has a configuration of its own, with one pool and the interval.
func evaluator(t *testing.T, interval time.Duration, facts *cluster.Snapshot) *policy.Evaluator {
	t.Helper()
	cfg := &config.WarmPoolConfiguration{AuditInterval: &metav1.Duration{Duration: interval}, Pools: []config.Pool{{Name: "cpu", NodePools: []string{"spaces-cpu"}}}}
	config.SetDefaults(cfg)
	return other(t, cfg, facts)
}

func other(t *testing.T, cfg *config.WarmPoolConfiguration, facts *cluster.Snapshot) *policy.Evaluator {
	t.Helper()
	e, err := policy.New(cfg, facts, time.Now())
	require.NoError(t, err)
	return e
}

func TestWhenToAudit(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	facts := &cluster.Snapshot{
		Deployments: cluster.Known(map[string]*appsv1.Deployment{}), Nodes: cluster.Known(map[string]*corev1.Node{}),
	}
	e := evaluator(t, 10*time.Minute, facts)
	moreNodes, moreDeployments := *facts, *facts
	moreNodes.Nodes = facts.Nodes.With(map[string]*corev1.Node{"a": {}})
	moreDeployments.Deployments = facts.Deployments.With(map[string]*appsv1.Deployment{"a/b": {}})
	quiet, changed := other(t, e.Config(), &moreNodes), other(t, e.Config(), &moreDeployments)

	var s schedule
	assert.Equal(t, at(0), s.due(e, at(0)), "the first at once")
	s.done(e, at(0), at(10), true)
	assert.Equal(t, at(600), s.due(e, at(10)), "then at the interval, from start to start")
	assert.Equal(t, at(600), s.due(quiet, at(20)), "nodes come and go")
	assert.Equal(t, at(40), s.due(changed, at(20)), "not sooner than the pause after the last")
	assert.Equal(t, at(40), s.due(changed, at(39)), "more changes put it off no further")
	s.done(changed, at(40), at(41), true)
	assert.Equal(t, at(640), s.due(changed, at(42)), "nothing new")
	assert.Equal(t, at(305), s.due(e, at(300)), "after a long time without change: when it has settled")
	s.done(e, at(305), at(306), true)
	assert.Equal(t, at(905), s.due(changed, at(904)), "the interval counts where it is sooner")
	s.done(e, at(905), at(906), false)
	assert.Equal(t, at(936), s.due(e, at(907)), "one that failed is tried again")

	short := evaluator(t, 10*time.Second, facts)
	s.done(short, at(1000), at(1001), true)
	assert.Equal(t, at(1010), s.due(short, at(1001)))
	hurried := schedule{last: e, started: at(1000), ended: at(1001)}
	assert.Equal(t, at(1010), hurried.due(short, at(1002)), "a configuration that asks for more audits is heeded at once")
}
