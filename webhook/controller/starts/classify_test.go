package starts

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/prepull"
)

const image = "registry.example/notebook:1"

var began = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// at is a second after the Workspace's creation.
func at(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }

// workspacePod was created at 0, bound to the node at 2 and runs since 9.
func workspacePod(node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "w", UID: "w", CreationTimestamp: metav1.NewTime(began)},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "proxy", Image: "proxy"}, {Name: "workspace", Image: image}}},
		Status: corev1.PodStatus{
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at(2))}},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "proxy", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at(5))}}},
				{Name: "workspace", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at(9))}}},
			},
		},
	}
}

// placeholderOn is a placeholder pod that has pulled the images.
func placeholderOn(node string, pulled ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "overprovisioning", Name: "on-" + node, UID: types.UID("on-" + node), Labels: map[string]string{"app": "placeholder"}},
		Spec:       corev1.PodSpec{NodeName: node},
	}
	for n, i := range pulled {
		pod.Labels[prepull.ImageLabel(i)] = "true"
		name := fmt.Sprint("pull-", n)
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: name, Image: i})
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, corev1.ContainerStatus{
			Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(at(-90))}},
		})
	}
	return pod
}

// pulledBeside is a placeholder whose pull has ended at a second.
func pulledBeside(node string, seconds int) *corev1.Pod {
	pod := placeholderOn(node, image)
	pod.Status.InitContainerStatuses[0].State.Terminated.FinishedAt = metav1.NewTime(at(seconds))
	return pod
}

// untold is a placeholder whose status does not tell when it has pulled.
func untold(node string) *corev1.Pod {
	pod := placeholderOn(node, image)
	pod.Status = corev1.PodStatus{}
	return pod
}

// again is another placeholder on the node.
func again(node string, pulled ...string) *corev1.Pod {
	pod := placeholderOn(node, pulled...)
	pod.Name, pod.UID = pod.Name+"-2", pod.UID+"-2"
	return pod
}

func placeholders(pods ...*corev1.Pod) cluster.Facts[corev1.Pod] {
	byKey := map[string]*corev1.Pod{}
	for _, pod := range pods {
		byKey[pod.Namespace+"/"+pod.Name] = pod
	}
	return cluster.Known(byKey)
}

// pool has the nodes a, b and c in zone 1 and d in zone 2; e is another pool's.
func pool(t *testing.T) place {
	t.Helper()
	nodes := map[string]*corev1.Node{}
	for name, zone := range map[string]string{"a": "zone-1", "b": "zone-1", "c": "zone-1", "d": "zone-2", "e": "zone-1"} {
		of := "cpu-a"
		if name == "e" {
			of = "other"
		}
		nodes[name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{config.NodePoolLabel: of, corev1.LabelTopologyZone: zone}}}
	}
	cfg, err := config.Load([]byte("apiVersion: config.warmpool.sh/v1alpha1\nkind: WarmPoolConfiguration\npools: [{name: cpu, nodePools: [cpu-a]}]\n"), policy.IDs())
	require.NoError(t, err)
	facts := &cluster.Snapshot{Nodes: cluster.Known(nodes)}
	return place{pool: placement.Compile(cfg, facts, placement.Seen{}).Get("cpu"), nodes: facts.Nodes}
}

// look is what the history sees at a time.
type look struct {
	at   time.Time
	pods []*corev1.Pod
}

func TestClassify(t *testing.T) {
	for _, test := range []struct {
		name  string
		node  string
		looks []look
		want  start
	}{
		{"beside a placeholder", "a", []look{{at(-60), []*corev1.Pod{placeholderOn("a", image)}}}, start{path: pathCoexist}},
		{"beside one that ends long after", "a", []look{{at(-60), []*corev1.Pod{placeholderOn("a", image)}}, {at(60), nil}}, start{path: pathCoexist}},
		{"in the place of one", "a", []look{{at(-60), []*corev1.Pod{placeholderOn("a", image), placeholderOn("b", image)}}, {at(1), []*corev1.Pod{placeholderOn("b", image)}}}, start{path: pathPreempt}},
		{"in the place of one that is seen to go a little late", "a", []look{{at(-60), []*corev1.Pod{placeholderOn("a", image)}}, {at(4), nil}}, start{path: pathPreempt}},
		{"a placeholder comes after the start", "a", []look{{at(-60), []*corev1.Pod{placeholderOn("a", image)}}, {at(1), nil}, {at(3), []*corev1.Pod{placeholderOn("b", image)}}}, start{path: pathPreempt}},
		{"beside one that has taken the place of another, of a rollout say", "a", []look{{at(-60), []*corev1.Pod{placeholderOn("a", image)}}, {at(1), []*corev1.Pod{again("a", image)}}}, start{path: pathCoexist}},
		{"one has come since, on the same node", "a", []look{{at(-60), []*corev1.Pod{placeholderOn("a", image)}}, {at(1), nil}, {at(8), []*corev1.Pod{again("a", image)}}}, start{path: pathPreempt}},
		{"the first one has come since", "a", []look{{at(-60), nil}, {at(8), []*corev1.Pod{placeholderOn("a", image)}}},
			start{path: pathCold, cause: causeNoWarm, note: "cold: no node of the pool had pulled registry.example/notebook:1"}},
		{"both have pulled at the same time", "a", []look{{at(-60), nil}, {at(1), []*corev1.Pod{placeholderOn("a")}}, {at(7), []*corev1.Pod{pulledBeside("a", 6)}}},
			start{path: pathCold, cause: causeNotPulled, note: "cold: node a has a placeholder, which has not pulled registry.example/notebook:1"}},
		{"the kubelet tells that it was in time", "a", []look{{at(-60), nil}, {at(1), []*corev1.Pod{placeholderOn("a")}}, {at(7), []*corev1.Pod{pulledBeside("a", 2)}}}, start{path: pathCoexist}},
		{"the pull was seen after the start, and no kubelet tells", "a", []look{{at(-60), []*corev1.Pod{placeholderOn("a")}}, {at(8), []*corev1.Pod{untold("a")}}},
			start{path: pathCold, cause: causeNotPulled, note: "cold: node a has a placeholder, which has not pulled registry.example/notebook:1"}},
		{"the pull was seen a little after the start", "a", []look{{at(-60), []*corev1.Pod{placeholderOn("a")}}, {at(6), []*corev1.Pod{untold("a")}}}, start{path: pathCoexist}},
		{"it had pulled before anybody looked", "a", []look{{at(9), []*corev1.Pod{untold("a")}}}, start{path: pathCoexist}},
		{"the placeholder has another image", "a", []look{{at(-60), []*corev1.Pod{placeholderOn("a", "old")}}},
			start{path: pathCold, cause: causeNotPulled, note: "cold: node a has a placeholder, which has not pulled registry.example/notebook:1"}},
		{"the evicted placeholder was still pulling", "a", []look{{at(-60), []*corev1.Pod{placeholderOn("a")}}, {at(1), nil}},
			start{path: pathCold, cause: causeNotPulled, note: "cold: node a had a placeholder, which had not pulled registry.example/notebook:1"}},
		{"one that left before the Workspace came", "a", []look{{at(-60), []*corev1.Pod{placeholderOn("a", image)}}, {at(-30), nil}},
			start{path: pathCold, cause: causeNoWarm, note: "cold: no node of the pool had pulled registry.example/notebook:1"}},
		{"nothing is warm", "a", nil, start{path: pathCold, cause: causeNoWarm, note: "cold: no node of the pool had pulled registry.example/notebook:1"}},
		{"another pool's node is warm", "a", []look{{at(-60), []*corev1.Pod{placeholderOn("e", image)}}},
			start{path: pathCold, cause: causeNoWarm, note: "cold: no node of the pool had pulled registry.example/notebook:1"}},
		{"warm nodes are passed over", "c", []look{{at(-60), []*corev1.Pod{placeholderOn("a", image), placeholderOn("b", image)}}},
			start{path: pathCold, cause: causeElsewhere, note: "cold: 2 nodes were warm, and the Workspace took node c, which has no placeholder"}},
		{"the warm node is in another zone", "d", []look{{at(-60), []*corev1.Pod{placeholderOn("a", image)}}},
			start{path: pathCold, cause: causeZone, note: "cold: no warm node in zone zone-2; 1 node was warm in others"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHistory()
			for _, look := range test.looks {
				h.observe(placeholders(look.pods...), look.at)
			}
			w := workspacePod(test.node)
			times, ok := begun(w)
			require.True(t, ok)
			test.want.took = 9 * time.Second
			assert.Equal(t, test.want, classify(w, pool(t), times, h))
		})
	}
}

func TestBegun(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){
		"not bound":       func(p *corev1.Pod) { p.Spec.NodeName = "" },
		"no condition":    func(p *corev1.Pod) { p.Status.Conditions = nil },
		"still waits":     func(p *corev1.Pod) { p.Status.ContainerStatuses[1].State = corev1.ContainerState{} },
		"only the proxy":  func(p *corev1.Pod) { p.Status.ContainerStatuses = p.Status.ContainerStatuses[:1] },
		"no container":    func(p *corev1.Pod) { p.Spec.Containers = nil },
		"not yet settled": func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse },
	} {
		pod := workspacePod("a")
		change(pod)
		_, ok := begun(pod)
		assert.False(t, ok, name)
	}
}

func TestHistoryForgets(t *testing.T) {
	h := newHistory()
	h.observe(placeholders(placeholderOn("a", image), placeholderOn("b", image)), at(0))
	h.observe(placeholders(placeholderOn("b", image)), at(10))
	assert.Len(t, h.byNode, 2)
	ending := placeholderOn("b", image)
	ending.DeletionTimestamp = &metav1.Time{Time: at(20)}
	h.observe(placeholders(ending), at(20))
	assert.Equal(t, []string{"b"}, h.with(image, at(15)))
	assert.Empty(t, h.with(image, at(20)), "a pod that is about to end counts as gone")
	h.observe(placeholders(), at(10).Add(remembered+time.Second))
	assert.Len(t, h.byNode, 1)
	h.observe(placeholders(), at(20).Add(remembered+time.Second))
	assert.Empty(t, h.byNode)
	assert.Empty(t, h.node)
}
