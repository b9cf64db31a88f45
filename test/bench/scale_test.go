package bench

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook"
	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

// BenchmarkScale answers the same request in clusters of 10, 1,000 and 10,000 nodes with 200 DaemonSets and 20 pools,
// in turn, and reports the cost over that at 10 nodes: x-10.
func BenchmarkScale(b *testing.B) {
	sizes := []int{10, 1_000, 10_000}
	for _, c := range []struct{ name, body, path string }{
		{"pod", "pod.json", webhook.PodsPath},
		{"placeholder", "shipped.json", webhook.ValidatePlaceholdersPath},
	} {
		body := review(b, c.body)
		var rows []row
		for _, nodes := range sizes {
			cfg, facts := largeCluster(nodes)
			e, err := policy.New(cfg, facts, time.Unix(0, 0))
			require.NoError(b, err)
			handlers := webhook.Handlers(func() *policy.Evaluator { return e }, "", logr.Discard())
			rows = append(rows, row{fmt.Sprint(nodes), handlers[c.path]})
		}
		for i := 1; i < len(rows); i++ {
			b.Run(fmt.Sprintf("%s/%s-nodes", c.name, rows[i].name), func(b *testing.B) {
				times := inTurn(b, []http.Handler{rows[0].handler, rows[i].handler}, body)
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(times[1]/times[0], "x-10")
			})
		}
	}
}

func inTurn(b *testing.B, handlers []http.Handler, body []byte) []float64 {
	times := make([]float64, len(handlers))
	for round := 0; b.Loop(); round++ {
		for i := range handlers {
			i = (i + round) % len(handlers) // no one is always the first
			began := cpuTime(b)
			for range 20 {
				serve(b, handlers[i], body)
			}
			times[i] += float64(cpuTime(b) - began)
		}
	}
	return times
}

// BenchmarkRebuild takes in the change of one node: what admissions go by is made anew, off their path.
func BenchmarkRebuild(b *testing.B) {
	for _, nodes := range []int{10, 1_000, 10_000} {
		b.Run(fmt.Sprintf("%d-nodes", nodes), func(b *testing.B) {
			cfg, facts := largeCluster(nodes)
			var evaluators webhook.Evaluators
			require.NoError(b, evaluators.Configure(cfg))
			require.NoError(b, evaluators.Observe(facts))
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				name := fmt.Sprintf("node-%05d", i%nodes)
				changed := facts.Nodes.Get(name).DeepCopy()
				changed.Status.Allocatable[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(47_000+i%800), resource.DecimalSI)
				next := *facts
				next.Nodes = facts.Nodes.With(map[string]*corev1.Node{name: changed})
				if err := evaluators.Observe(&next); err != nil {
					b.Fatal(err)
				}
				facts = &next
			}
		})
	}
}

// largeCluster is 20 pools of one type each with the nodes spread over them, and 200 DaemonSets of which many run on
// some types only. A pool has as many shapes at 10 nodes as at 10,000: what grows is the number of nodes alone.
func largeCluster(nodes int) (*config.WarmPoolConfiguration, *cluster.Snapshot) {
	const pools, daemonSets = 20, 200
	cfg := &config.WarmPoolConfiguration{}
	nodePools := map[string]*cluster.NodePool{}
	for i := range pools {
		name := fmt.Sprintf("pool-%02d", i)
		pool := config.Pool{Name: name, NodePools: []string{name}}
		if i%2 == 1 {
			pool.Accelerators = []string{"nvidia.com/*"}
		}
		cfg.Pools = append(cfg.Pools, pool)
		nodePools[name] = &cluster.NodePool{Name: name, Taints: []corev1.Taint{{Key: "dedicated", Value: "notebooks", Effect: corev1.TaintEffectNoSchedule}}}
	}
	// The shipped placeholder names this pool.
	cfg.Pools[1].Name, cfg.Pools[1].NodePools = "gpu", []string{"spaces-gpu"}
	nodePools["spaces-gpu"] = &cluster.NodePool{Name: "spaces-gpu"}
	config.SetDefaults(cfg)

	all := map[string]*corev1.Node{}
	for i := range nodes {
		node := largeNode(i, cfg.Pools[i%pools].NodePools[0])
		all[node.Name] = node
	}
	daemons := map[string]*appsv1.DaemonSet{}
	for i := range daemonSets {
		ds := largeDaemonSet(i)
		daemons["kube-system/"+ds.Name] = ds
	}
	never := corev1.PreemptNever
	return cfg, &cluster.Snapshot{
		Nodes: cluster.Known(all), NodePools: cluster.Known(nodePools), DaemonSets: cluster.Known(daemons),
		LimitRanges: cluster.Known(map[string]*corev1.LimitRange{}),
		Namespaces:  cluster.Known(map[string]*corev1.Namespace{"overprovisioning": {ObjectMeta: metav1.ObjectMeta{Name: "overprovisioning"}}}),
		PriorityClasses: cluster.Known(map[string]*schedulingv1.PriorityClass{
			"overprovisioning-placeholder": {ObjectMeta: metav1.ObjectMeta{Name: "overprovisioning-placeholder"}, Value: -1000, PreemptionPolicy: &never},
		}),
	}
}

func largeNode(i int, nodePool string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%05d", i), Labels: map[string]string{
			"karpenter.sh/nodepool": nodePool, corev1.LabelInstanceTypeStable: fmt.Sprintf("ml.m5.%dxlarge", 4<<(i%2)),
			corev1.LabelHostname: fmt.Sprintf("node-%05d", i), corev1.LabelArchStable: "amd64", corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%3),
		}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "dedicated", Value: "notebooks", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("47810m"), corev1.ResourceMemory: resource.MustParse("193044768Ki"),
				corev1.ResourcePods: resource.MustParse("234"), "nvidia.com/gpu": resource.MustParse("4"),
			},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

func largeDaemonSet(i int) *appsv1.DaemonSet {
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("agent-%03d", i), Namespace: "kube-system"}}
	ds.Spec.Template.Spec = corev1.PodSpec{
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{{Name: "agent", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("20Mi"),
		}}}},
	}
	switch i % 4 {
	case 1:
		ds.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelInstanceTypeStable: "ml.m5.4xlarge"}
	case 2:
		ds.Spec.Template.Spec.Tolerations = nil // kept off the pools' nodes
	case 3:
		ds.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"arm64"}}}}},
		}}}
	}
	return ds
}
