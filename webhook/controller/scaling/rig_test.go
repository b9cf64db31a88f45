package scaling

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/demand"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/prepull"
	"warmpool.sh/webhook/sizing"
)

// rig is a cluster with one pool whose nodes take one Workspace, and its leader. Nodes take lead to get warm, half of it to boot.
type rig struct {
	client.Client

	t           *testing.T
	controller  *Controller
	size        string // of the configuration
	config      *config.WarmPoolConfiguration
	evaluator   *policy.Evaluator // nil: something has changed
	deployments map[string]*appsv1.Deployment
	others      map[string]*appsv1.Deployment
	hpas        []autoscalingv2.HorizontalPodAutoscaler
	configMap   *corev1.ConfigMap
	pods        map[string]*corev1.Pod
	nodes       map[string]*corev1.Node
	taken       map[string]types.UID // by Workspaces
	lead        time.Duration
	// most is the NodePool's limit of nodes, 0 for none; scarce is as many as the cloud has. Where failing is set, pulls fail.
	most, scarce int
	failing      bool
	made         int
	version      int
	// fails is what the API server answers to all.
	fails  error
	events []string
	scales []time.Time
	saves  []time.Time
	logs   []string
}

// inBubble runs a test on a Monday at 7 with placeholders of the names.
func inBubble(t *testing.T, size string, names []string, test func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(2*24*time.Hour + 7*time.Hour) // a bubble begins on a Saturday
		r := &rig{
			t: t, size: size, deployments: map[string]*appsv1.Deployment{}, others: map[string]*appsv1.Deployment{}, pods: map[string]*corev1.Pod{},
			nodes: map[string]*corev1.Node{}, taken: map[string]types.UID{}, lead: 6 * time.Minute,
		}
		for _, name := range names {
			r.deployments[name] = r.deployment(name, map[string]string{"warmpool.sh/pool": "cpu"})
		}
		r.configure(size)
		r.lead0()
		test(r)
	})
}

func (r *rig) deployment(name string, labels map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "overprovisioning", Name: name, UID: types.UID(name), ResourceVersion: "1", Labels: labels, CreationTimestamp: metav1.Now(),
			ManagedFields: []metav1.ManagedFieldsEntry{fields("kubectl", time.Now())},
		},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}},
	}
}

func fields(manager string, at time.Time) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: "Update", Time: new(metav1.NewTime(at)), FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`)}
}

func (r *rig) configure(size string) {
	r.t.Helper()
	cfg, err := config.Load([]byte("apiVersion: config.warmpool.sh/v1alpha1\nkind: WarmPoolConfiguration\npools: [{name: cpu, nodePools: [np], sizing: {mode: Exclusive}, size: "+size+"}]\n"), policy.IDs())
	require.NoError(r.t, err)
	r.config, r.evaluator = cfg, nil
}

// lead0 has another leader begin.
func (r *rig) lead0() {
	clock := func(t time.Time) time.Time { return t }
	r.controller = &Controller{
		recorder: newRecorder(r.current, clock), sizes: func() *sizing.Sizes { return sizing.NewTracker(r.config).Update(r.current().Facts()) },
		log: funcr.New(func(_, args string) { r.logs = append(r.logs, args) }, funcr.Options{}), events: r, occupants: r, reader: r, writer: r,
		store: &store{reader: r, writer: r, key: client.ObjectKey{Namespace: "warmpool-system", Name: demand.ConfigMapName}},
		pools: map[string]*pool{}, promised: map[types.UID]promise{}, began: time.Now(), interval: interval,
	}
}

func (r *rig) current() *policy.Evaluator {
	if r.evaluator == nil {
		deployments := map[string]*appsv1.Deployment{}
		for _, d := range slices.Concat(slices.Collect(maps.Values(r.deployments)), slices.Collect(maps.Values(r.others))) {
			seen := d.DeepCopy()
			seen.ManagedFields = nil
			deployments[d.Namespace+"/"+d.Name] = seen
		}
		np := &cluster.NodePool{Name: "np", APIVersion: "karpenter.sh/v1", Disruption: cluster.Disruption{ConsolidateAfter: "5m"}}
		if r.most > 0 {
			np.Limits = corev1.ResourceList{"cpu": *resource.NewQuantity(int64(16*r.most), resource.DecimalSI)}
		}
		e, err := policy.New(r.config, &cluster.Snapshot{
			Deployments: cluster.Known(deployments), PlaceholderPods: cluster.Known(maps.Clone(r.pods)), Nodes: cluster.Known(maps.Clone(r.nodes)),
			NodePools: cluster.Known(map[string]*cluster.NodePool{"np": np}), NodeClaims: cluster.Known[cluster.NodeClaim](nil),
		}, time.Now())
		require.NoError(r.t, err)
		r.evaluator = e
	}
	return r.evaluator
}

// pass lets time pass, with a step of the leader each quarter of a minute.
func (r *rig) pass(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		r.controllers()
		r.controller.step(r.t.Context())
		time.Sleep(interval)
	}
}

// controllers are those of Deployments, the scheduler, Karpenter and the kubelets.
func (r *rig) controllers() {
	now := time.Now()
	for _, name := range slices.Sorted(maps.Keys(r.deployments)) {
		own := slices.DeleteFunc(slices.Sorted(maps.Keys(r.pods)), func(key string) bool { return policy.DeploymentOf(r.pods[key]) != name })
		slices.SortStableFunc(own, func(a, b string) int { return rank(r.pods[a]) - rank(r.pods[b]) })
		for n := len(own) - int(policy.ReplicasOf(r.deployments[name])); n > 0; n-- {
			r.remove(own[0])
			own = own[1:]
		}
		for n := len(own); n < int(policy.ReplicasOf(r.deployments[name])); n++ {
			r.made++
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: "overprovisioning", Name: fmt.Sprintf("%s-%04d", name, r.made), UID: types.UID(fmt.Sprint(r.made)), CreationTimestamp: metav1.Now(),
				OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: name + "-5d9f", Controller: new(true)}},
			}, Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: prepull.Name, Image: "r/a:1"}}}}
			r.pods["overprovisioning/"+pod.Name], r.evaluator = pod, nil
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.pods)) {
		r.kubelet(key, now)
	}
}

// rank is the order in which pods go: without a node, not warm, warm.
func rank(pod *corev1.Pod) int {
	_, warm := prepull.OnNode(pod)
	switch {
	case pod.Spec.NodeName == "":
		return 0
	case !warm:
		return 1
	}
	return 2
}

func (r *rig) remove(key string) {
	if node := r.pods[key].Spec.NodeName; node != "" && r.taken[node] == "" {
		delete(r.nodes, node)
	}
	delete(r.pods, key)
	r.evaluator = nil
}

func (r *rig) kubelet(key string, now time.Time) {
	pod := r.pods[key].DeepCopy()
	age := now.Sub(pod.CreationTimestamp.Time)
	room := (r.most == 0 || len(r.nodes) < r.most) && (r.scarce == 0 || len(r.nodes) < r.scarce)
	switch {
	case pod.Spec.NodeName == "" && age >= r.lead/2 && room:
		r.made++
		pod.Spec.NodeName = fmt.Sprintf("node-%04d", r.made)
		offer := corev1.ResourceList{"cpu": resource.MustParse("16")}
		r.nodes[pod.Spec.NodeName] = &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName, CreationTimestamp: metav1.Now(), Labels: map[string]string{"karpenter.sh/nodepool": "np"}},
			Status:     corev1.NodeStatus{Allocatable: offer, Capacity: offer},
		}
	case pod.Spec.NodeName != "" && rank(pod) == 1 && r.failing && age >= r.lead:
		pod.Labels = map[string]string{prepull.WarmLabel: prepull.WarmFailed}
	case pod.Spec.NodeName != "" && rank(pod) == 1 && age >= r.lead:
		pod.Labels = nil
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: prepull.Name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.Now()}}}}
	default:
		return
	}
	r.pods[key], r.evaluator = pod, nil
}

// start is a Workspace that takes the place of a warm placeholder, or else the node of the first that comes.
func (r *rig) start() (found bool) {
	r.made++
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: fmt.Sprint("w-", r.made), UID: types.UID(fmt.Sprint("w-", r.made)), CreationTimestamp: metav1.Now(),
		Labels: map[string]string{config.WorkspaceLabel: fmt.Sprint("w-", r.made)},
	}}
	r.controller.Seen(pod)
	for _, key := range slices.Sorted(maps.Keys(r.pods)) {
		if rank(r.pods[key]) == 2 {
			r.taken[r.pods[key].Spec.NodeName] = pod.UID
			r.remove(key)
			r.controller.Started(pod, "cpu", true)
			return true
		}
	}
	r.controller.Started(pod, "cpu", false)
	return false
}

// end ends all Workspaces: their nodes go.
func (r *rig) end() {
	for node := range r.taken {
		delete(r.nodes, node)
	}
	clear(r.taken)
	r.evaluator = nil
}

// learned is a pool that has seen six weeks with so many starts an hour from 8 to 18 on weekdays.
func learned(rate int, until time.Time) *demand.Pool {
	p, s := &demand.Pool{}, &demand.Settings{Objective: 0.95, LeadTime: 6 * time.Minute}
	for at := until.AddDate(0, 0, -42); at.Before(until); at = at.Add(time.Minute) {
		p.Keep(s, at)
		if day := at.Weekday(); day != time.Saturday && day != time.Sunday && at.Hour() >= 8 && at.Hour() < 18 && at.Minute()*rate/60 != (at.Minute()+1)*rate/60 {
			p.Started(s, at, true)
		}
	}
	p.Shift = 0
	return p
}

// knows has the ConfigMap hold a pool.
func (r *rig) knows(p *demand.Pool) {
	data, err := (&demand.State{Pools: map[string]*demand.Pool{"cpu": p}}).Write(nil, time.Now())
	require.NoError(r.t, err)
	r.configMap = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}, Data: data}
}

// Eventf takes an Event down.
func (r *rig) Eventf(_, _ runtime.Object, _, reason, _, format string, args ...any) {
	r.events = append(r.events, time.Now().Format("15:04 ")+reason+": "+fmt.Sprintf(format, args...))
}

// Has is package starts's.
func (r *rig) Has(node string) (has, known bool) { return r.taken[node] != "", true }

// replicas are those of all placeholders.
func (r *rig) replicas() (sum int) {
	for _, d := range r.deployments {
		sum += int(policy.ReplicasOf(d))
	}
	return sum
}

// warm is how many placeholders are.
func (r *rig) warm() (warm int) {
	for _, pod := range r.pods {
		if rank(pod) == 2 {
			warm++
		}
	}
	return warm
}

// set is what another writer does to the scale.
func (r *rig) set(name, manager string, replicas int32) {
	d := r.deployments[name].DeepCopy()
	r.version++
	d.ResourceVersion, d.Spec.Replicas, d.ManagedFields = fmt.Sprint("v", r.version), &replicas, []metav1.ManagedFieldsEntry{fields(manager, time.Now())}
	r.deployments[name], r.evaluator = d, nil
}

// Get is the API server's.
func (r *rig) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	switch into := object.(type) {
	case *corev1.ConfigMap:
		if r.fails == nil && r.configMap != nil {
			r.configMap.DeepCopyInto(into)
			return nil
		}
	case *appsv1.Deployment:
		if d := r.deployments[key.Name]; r.fails == nil && d != nil {
			d.DeepCopyInto(into)
			return nil
		}
	}
	if r.fails != nil {
		return r.fails
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "any"}, key.Name)
}

// List is the API server's.
func (r *rig) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch into := list.(type) {
	case *autoscalingv2.HorizontalPodAutoscalerList:
		into.Items = r.hpas
	case *unstructured.UnstructuredList:
		into.Items = []unstructured.Unstructured{{Object: map[string]any{
			"metadata": map[string]any{"name": "np"}, "status": map[string]any{"resources": map[string]any{"cpu": fmt.Sprint(16 * len(r.nodes))}},
		}}}
	}
	return r.fails
}

// Create is of the ConfigMap.
func (r *rig) Create(ctx context.Context, object client.Object, _ ...client.CreateOption) error {
	return r.Update(ctx, object)
}

// Update is of the ConfigMap.
func (r *rig) Update(_ context.Context, object client.Object, _ ...client.UpdateOption) error {
	if configMap, ok := object.(*corev1.ConfigMap); ok && r.fails == nil {
		r.saves = append(r.saves, time.Now())
		r.configMap = configMap.DeepCopy()
		r.configMap.ResourceVersion = "2"
	}
	return r.fails
}

// SubResource is the scale.
func (r *rig) SubResource(string) client.SubResourceClient { return scaler{rig: r} }

type scaler struct {
	client.SubResourceClient
	rig *rig
}

// Patch takes a merge patch of the replicas.
func (s scaler) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	r := s.rig
	data, err := patch.Data(object)
	require.NoError(r.t, err)
	var what struct {
		Metadata struct{ ResourceVersion string }
		Spec     struct{ Replicas int32 }
	}
	require.NoError(r.t, json.Unmarshal(data, &what))
	if r.fails != nil {
		return r.fails
	}
	if what.Metadata.ResourceVersion != r.deployments[object.GetName()].ResourceVersion {
		return apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, object.GetName(), nil)
	}
	require.NotEqual(r.t, what.Spec.Replicas, *r.deployments[object.GetName()].Spec.Replicas, "a write that changes nothing")
	r.scales = append(r.scales, time.Now())
	r.set(object.GetName(), FieldManager, what.Spec.Replicas)
	return nil
}

// spaced wants all writes to have kept their distance.
func (r *rig) spaced() {
	r.t.Helper()
	for i := 1; i < len(r.scales); i++ {
		require.GreaterOrEqual(r.t, r.scales[i].Sub(r.scales[i-1]), 30*time.Second, "two scale writes")
	}
	for i := 1; i < len(r.saves); i++ {
		require.GreaterOrEqual(r.t, r.saves[i].Sub(r.saves[i-1]), saving, "two writes of the ConfigMap")
	}
}
