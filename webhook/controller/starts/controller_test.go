package starts

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/cluster/live"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/controller/follow"
	"warmpool.sh/webhook/policy"
)

// rig is a Controller in a bubble of time, with pods as its watch has brought them.
type rig struct {
	client.Reader
	t          *testing.T
	controller *Controller
	queue      workqueue.TypedDelayingInterface[types.NamespacedName]
	pods       sync.Map // by types.NamespacedName
	events     []string
}

// inBubble runs a test with a Controller for which the nodes have the placeholders.
func inBubble(t *testing.T, test func(*rig), placeholderPods ...*corev1.Pod) {
	synctest.Test(t, func(t *testing.T) {
		starts.Reset()
		seconds.Reset()
		e := evaluator(t, "", placeholderPods...)
		r := &rig{t: t, queue: workqueue.NewTypedDelayingQueue[types.NamespacedName]()}
		r.controller = &Controller{
			log: logr.Discard(), source: func() *policy.Evaluator { return e }, events: r,
			Signal: follow.New(), history: newHistory(), nodes: newOccupancy(), told: map[types.UID]bool{},
		}
		r.controller.history.observe(e.Facts().PlaceholderPods, at(-60))
		go r.controller.work(t.Context(), r, r.queue)
		test(r)
		r.queue.ShutDown()
	})
}

// evaluator has Workspaces by a label with the value, if there is one.
func evaluator(t *testing.T, value string, pods ...*corev1.Pod) *policy.Evaluator {
	t.Helper()
	text := "apiVersion: config.warmpool.sh/v1alpha1\nkind: WarmPoolConfiguration\npools: [{name: cpu, nodePools: [cpu-a]}]\n"
	if value != "" {
		text += "workspaces: {selector: {matchLabels: {workspace: " + value + "}}}\n"
	}
	cfg, err := config.Load([]byte(text), policy.IDs())
	require.NoError(t, err)
	e, err := policy.New(cfg, &cluster.Snapshot{Nodes: pool(t).nodes, PlaceholderPods: placeholders(pods...)}, began)
	require.NoError(t, err)
	return e
}

// Get is the cache's.
func (r *rig) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	pod, isPod := object.(*corev1.Pod)
	have, _ := r.pods.Load(key)
	found, there := have.(*corev1.Pod)
	if !isPod || !there {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, key.Name)
	}
	found.DeepCopyInto(pod)
	return nil
}

// Once takes an Event down.
func (r *rig) Once(name string, regarding runtime.Object, _, reason, _, note string) {
	if pod, ok := regarding.(*corev1.Pod); ok {
		r.events = append(r.events, fmt.Sprint(name, " ", pod.Name, " ", reason, " ", note))
	}
}

// brings is the watch's.
func (r *rig) brings(pod *corev1.Pod) {
	r.t.Helper()
	obj, err := live.WorkspacePod(pod.DeepCopy())
	require.NoError(r.t, err)
	stripped, ok := obj.(*corev1.Pod)
	require.True(r.t, ok)
	r.pods.Store(client.ObjectKeyFromObject(pod), stripped)
	r.controller.seen(stripped, r.queue)
}

// settles waits until all that has begun is told.
func (r *rig) settles() {
	time.Sleep(settle)
	synctest.Wait()
}

func told(path, cause string) float64 {
	return testutil.ToFloat64(starts.WithLabelValues("cpu", path, cause))
}

func TestAStartIsToldOnce(t *testing.T) {
	inBubble(t, func(r *rig) {
		waiting := workspacePod("a")
		waiting.Status.ContainerStatuses = nil
		r.brings(waiting)
		r.settles()
		assert.Zero(t, testutil.CollectAndCount(starts), "it does not run yet")
		r.brings(workspacePod("a"))
		time.Sleep(settle - time.Millisecond)
		synctest.Wait()
		assert.Zero(t, testutil.CollectAndCount(starts), "its placeholder may not have been seen yet")
		r.settles()
		r.brings(workspacePod("a"))
		r.settles()
		assert.InDelta(t, 1, told(pathCold, causeNoWarm), 0)
		assert.Equal(t, 1, testutil.CollectAndCount(starts))
		assert.Equal(t, 1, testutil.CollectAndCount(seconds))
		assert.Equal(t, []string{"warmpool-start-w w ColdStart cold: no node of the pool had pulled registry.example/notebook:1"}, r.events)
	})
}

func TestAWarmStartMakesNoEvent(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.brings(workspacePod("a"))
		r.settles()
		assert.InDelta(t, 1, told(pathCoexist, ""), 0)
		assert.Equal(t, 1, testutil.CollectAndCount(starts))
		assert.Empty(t, r.events)
	}, placeholderOn("a", image))
}

// A Workspace that has chosen other nodes is no cold start of the pool, warm as that may be.
func TestItsOwnNodes(t *testing.T) {
	inBubble(t, func(r *rig) {
		pod := workspacePod("e")
		pod.Spec.NodeSelector = map[string]string{config.NodePoolLabel: "other"}
		r.brings(pod)
		r.settles()
		assert.InDelta(t, 1, testutil.ToFloat64(starts.WithLabelValues("", pathCold, causeOwnNodes)), 0)
		assert.Equal(t, 1, testutil.CollectAndCount(starts))
		assert.Equal(t, []string{"warmpool-start-w w ColdStart cold: its own node selection leaves out all nodes of pool cpu"}, r.events)
	}, placeholderOn("a", image))
}

// The watch of placeholders may be a little behind that of Workspaces.
func TestThePlaceholderIsSeenLate(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.brings(workspacePod("a"))
		r.controller.history.observe(placeholders(placeholderOn("a", image)), at(6))
		r.settles()
		assert.InDelta(t, 1, told(pathCoexist, ""), 0)
	})
}

// What ran before the controller led was told by an earlier leader, or no one knows how it started. How long the first
// list of pods takes does not matter.
func TestWhatRanBeforeIsNotTold(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.controller.began = at(10)
		r.brings(workspacePod("a"))
		r.brings(workspacePod("a"))
		r.settles()
		assert.Zero(t, testutil.CollectAndCount(starts))

		r.controller.began = at(9)
		same := workspacePod("a")
		same.UID = "another"
		r.brings(same)
		r.settles()
		assert.Equal(t, 1, testutil.CollectAndCount(starts), "it began to run in the second in which the controller did")
	})
}

func TestWhatIsGoneIsForgotten(t *testing.T) {
	inBubble(t, func(r *rig) {
		pod := workspacePod("a")
		for name, obj := range map[string]any{"deleted": pod, "missed": toolscache.DeletedFinalStateUnknown{Key: "team/w", Obj: pod}} {
			r.brings(pod)
			r.pods.Clear() // it ends at once
			r.controller.gone(obj)
			r.settles()
			assert.Empty(t, r.controller.told, name)
			assert.Zero(t, testutil.CollectAndCount(starts), name)
		}
		r.controller.gone(toolscache.DeletedFinalStateUnknown{Key: "team/w"})
		r.controller.seen(&corev1.Node{}, r.queue)
	})
}

// Another selector begins another watch and ends the one before; another Evaluator with the same does not.
func TestTheSelectorChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := (*policy.Evaluator)(nil)
		watches := make(chan string, 2)
		take := func() (all []string) {
			synctest.Wait()
			for len(watches) > 0 {
				all = append(all, <-watches)
			}
			return all
		}
		c := &Controller{log: logr.Discard(), source: func() *policy.Evaluator { return e }, Signal: follow.New(), history: newHistory(), nodes: newOccupancy()}
		c.watch = func(ctx context.Context, selector labels.Selector) error {
			watches <- "begin " + selector.String()
			<-ctx.Done()
			watches <- "end " + selector.String()
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { assert.NoError(t, c.Start(ctx)) }()
		assert.Empty(t, take(), "there is no Evaluator")
		for _, step := range []struct {
			value string
			want  []string
		}{
			{"a", []string{"begin workspace=a"}},
			{"a", nil},
			{"b", []string{"end workspace=a", "begin workspace=b"}},
		} {
			e = evaluator(t, step.value)
			c.Changed()
			assert.ElementsMatch(t, step.want, take())
		}
		cancel()
		assert.Equal(t, []string{"end workspace=b"}, take())
	})
}
