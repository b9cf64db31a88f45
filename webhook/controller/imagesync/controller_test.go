package imagesync

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/prepull"
)

func evaluatorOf(t testing.TB, cfg *config.WarmPoolConfiguration, facts cluster.Snapshot) *policy.Evaluator {
	t.Helper()
	e, err := policy.New(cfg, &facts, time.Unix(0, 0))
	require.NoError(t, err)
	return e
}

func TestOnlyWhatImagesDependOnMatters(t *testing.T) {
	r := newRig(t)
	facts := *r.evaluator().Facts()
	facts.Nodes, facts.NodePools = cluster.Known(map[string]*corev1.Node{}), cluster.Known(map[string]*cluster.NodePool{})
	before := evaluatorOf(t, r.config, facts)

	nodes := facts
	nodes.Nodes = facts.Nodes.With(map[string]*corev1.Node{"n": {}})
	nodes.LastSeen = cluster.Known(map[string]*corev1.Node{"n": {}})
	assert.False(t, matters(before, evaluatorOf(t, r.config, nodes)))
	again := *r.config
	assert.True(t, matters(before, evaluatorOf(t, &again, facts)), "configuration")
	for name, change := range map[string]func(f *cluster.Snapshot){
		"templates": func(f *cluster.Snapshot) {
			f.Templates = f.Templates.With(map[string]*cluster.WorkspaceTemplate{"shared/a": nil})
		},
		"Deployments": func(f *cluster.Snapshot) {
			f.Deployments = f.Deployments.With(map[string]*appsv1.Deployment{"a/b": {}})
		},
		"pods": func(f *cluster.Snapshot) {
			f.PlaceholderPods = f.PlaceholderPods.With(map[string]*corev1.Pod{"a/b": {}})
		},
		"NodePools": func(f *cluster.Snapshot) { f.NodePools = f.NodePools.With(map[string]*cluster.NodePool{"a": {}}) },
		"CRD":       func(f *cluster.Snapshot) { f.Templates = cluster.Unknown[cluster.WorkspaceTemplate]("gone") },
	} {
		changed := facts
		change(&changed)
		assert.True(t, matters(before, evaluatorOf(t, r.config, changed)), name)
	}
}

// Without the CRD, or while it comes back, everything stays as it is.
func TestTemplatesThatAreNotKnownChangeNothing(t *testing.T) {
	r := newRig(t)
	facts := *r.evaluator().Facts()
	facts.Templates = cluster.Unknown[cluster.WorkspaceTemplate]("no CRD")
	s := decide(goalOf(evaluatorOf(t, r.config, facts), r.server), nil, newMemory(r.server), r.now)
	assert.Equal(t, step{goal: s.goal}, s)
	assert.False(t, s.goal.known)
}

// Whoever makes a placeholder elsewhere, which warmpool does not write, must not hold the gauge at 0.
func TestPlaceholdersElsewhereAreNotInTheGauge(t *testing.T) {
	r := newRig(t)
	elsewhere := r.server.DeepCopy()
	elsewhere.Namespace = "team"
	elsewhere.Spec.Template.Spec.InitContainers[1].Image = "r/old:1"
	facts := *r.evaluator().Facts()
	facts.Deployments = facts.Deployments.With(map[string]*appsv1.Deployment{"team/ph": elsewhere})
	r.controller.scan(evaluatorOf(t, r.config, facts))
	assert.Equal(t, 1.0, testutil.ToFloat64(inSync.WithLabelValues("cpu")))
	facts.Deployments = cluster.Known(map[string]*appsv1.Deployment{"team/ph": elsewhere})
	r.controller.scan(evaluatorOf(t, r.config, facts))
	assert.Zero(t, testutil.CollectAndCount(inSync))
}

func TestNothingIsKeptOfPlaceholdersAndPoolsThatAreGone(t *testing.T) {
	r := newRig(t)
	r.look()
	key := types.NamespacedName{Namespace: "overprovisioning", Name: "ph"}
	require.Contains(t, r.controller.memories, key)
	assert.Equal(t, 1.0, testutil.ToFloat64(inSync.WithLabelValues("cpu")))
	both(r, "bare") // nothing to do, but a problem
	assert.Equal(t, 1, testutil.CollectAndCount(inSync))
	r.edit("a", "r/a:2")
	r.pass(patience)
	assert.NotZero(t, testutil.ToFloat64(syncs.WithLabelValues("cpu", resultBlocked)))

	facts := *r.evaluator().Facts()
	facts.Deployments = facts.Deployments.With(map[string]*appsv1.Deployment{"overprovisioning/ph": nil})
	assert.Empty(t, r.controller.scan(evaluatorOf(t, r.config, facts)))
	assert.Empty(t, r.controller.memories)
	assert.Zero(t, testutil.CollectAndCount(inSync))
	without := *r.config
	without.Pools = nil
	forgetPools(r.config, &without)
	assert.Zero(t, syncs.DeletePartialMatch(prometheus.Labels{"pool": "cpu"}), "there were none left")
}

func TestWhatAnErrorMeans(t *testing.T) {
	deployments := schema.GroupResource{Resource: "deployments"}
	for _, c := range []struct {
		err            error
		refused, stale bool
	}{
		{err: apierrors.NewForbidden(deployments, "ph", errors.New("no")), refused: true},
		{err: apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "ph", nil), refused: true},
		{err: apierrors.NewBadRequest("admission webhook denied the request"), refused: true},
		{err: apierrors.NewConflict(deployments, "ph", errors.New("uid")), stale: true},
		{err: apierrors.NewNotFound(deployments, "ph"), stale: true},
		{err: apierrors.NewTooManyRequests("later", 1)},
		{err: apierrors.NewInternalError(errors.New("webhook down"))},
		{err: errors.New("connection refused")},
	} {
		assert.Equal(t, c.refused, refused(c.err), c.err)
		assert.Equal(t, c.stale, stale(c.err), c.err)
	}
}

// many is a cluster of pools with two templates and two placeholders each, a half of which is stale.
func many(b *testing.B, placeholders int) *policy.Evaluator {
	cfg := &config.WarmPoolConfiguration{}
	templates, deployments := map[string]*cluster.WorkspaceTemplate{}, map[string]*appsv1.Deployment{}
	like := newRig(b)
	for i := range placeholders / 2 {
		pool := config.Pool{Name: fmt.Sprint("pool-", i), NodePools: []string{fmt.Sprint("np-", i)}}
		for j := range 2 {
			name := fmt.Sprintf("t-%d-%d", i, j)
			pool.Templates = append(pool.Templates, config.TemplateRef{Namespace: "shared", Name: name})
			templates["shared/"+name] = &cluster.WorkspaceTemplate{Namespace: "shared", Name: name, DefaultImage: "r/team/" + name + ":1"}
			d := like.server.DeepCopy()
			d.Name = fmt.Sprintf("ph-%d-%d", i, j)
			d.Labels["warmpool.sh/pool"] = pool.Name
			d.Annotations = prepull.Record{{Template: pool.Templates[0], Image: "r/team/" + name + ":0"}, {Template: pool.Templates[j], Image: "r/b"}}.Annotations()
			deployments[d.Namespace+"/"+d.Name] = d
		}
		cfg.Pools = append(cfg.Pools, pool)
	}
	config.SetDefaults(cfg)
	return evaluatorOf(b, cfg, cluster.Snapshot{Templates: cluster.Known(templates), Deployments: cluster.Known(deployments), PlaceholderPods: cluster.Known(map[string]*corev1.Pod{})})
}

// BenchmarkScan looks at all placeholders, as each change that matters makes the leader do.
func BenchmarkScan(b *testing.B) {
	for _, n := range []int{10, 500} {
		b.Run(fmt.Sprintf("%d-placeholders", n), func(b *testing.B) {
			e := many(b, n)
			c := newRig(b).controller
			b.ReportAllocs()
			for b.Loop() {
				if keys := c.scan(e); len(keys) != n {
					b.Fatal(len(keys))
				}
			}
		})
	}
}

// BenchmarkMatters is all that the change of a node costs.
func BenchmarkMatters(b *testing.B) {
	before := many(b, 500)
	facts := *before.Facts()
	facts.Nodes = cluster.Known(map[string]*corev1.Node{"n": {}})
	now := evaluatorOf(b, before.Config(), facts)
	b.ReportAllocs()
	for b.Loop() {
		if matters(before, now) {
			b.Fatal("nodes matter")
		}
	}
}
