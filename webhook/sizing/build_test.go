package sizing_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/sizing"
)

// list reads resources written as "cpu=1 memory=2Gi".
func list(s string) corev1.ResourceList {
	if s == "" {
		return nil
	}
	all := corev1.ResourceList{}
	for entry := range strings.FieldsSeq(s) {
		name, quantity, _ := strings.Cut(entry, "=")
		all[corev1.ResourceName(name)] = resource.MustParse(quantity)
	}
	return all
}

// text is the opposite of list, sorted.
func text(l corev1.ResourceList) string {
	var entries []string
	for _, name := range slices.Sorted(maps.Keys(l)) {
		quantity := l[name]
		entries = append(entries, string(name)+"="+quantity.String())
	}
	return strings.Join(entries, " ")
}

func container(requests, limits string) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: list(requests), Limits: list(limits)}}
}

func sidecar(requests string) corev1.Container {
	c := container(requests, "")
	c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	return c
}

func podOf(requests string) *corev1.PodSpec {
	return &corev1.PodSpec{Containers: []corev1.Container{container(requests, "")}}
}

func node(name, nodePool, instanceType, allocatable string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"karpenter.sh/nodepool": nodePool, corev1.LabelInstanceTypeStable: instanceType, corev1.LabelHostname: name,
			corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux",
		}},
		Status: corev1.NodeStatus{
			Allocatable: list(allocatable),
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, f := range change {
		f(n)
	}
	return n
}

func tainted(taints ...string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, parseTaints(taints...)...) }
}

func parseTaints(taints ...string) []corev1.Taint {
	var all []corev1.Taint
	for _, s := range taints {
		taint, err := config.ParseTaint(s)
		if err != nil {
			panic(err)
		}
		all = append(all, taint)
	}
	return all
}

func labelled(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

func notReady(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }

func deleting(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{} }

func daemonSet(key, requests string, change ...func(*corev1.PodSpec)) *appsv1.DaemonSet {
	namespace, name, _ := strings.Cut(key, "/")
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	ds.Spec.Template.Spec = *podOf(requests)
	for _, f := range change {
		f(&ds.Spec.Template.Spec)
	}
	return ds
}

func everywhere(spec *corev1.PodSpec) {
	spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
}

func onNodes(terms ...corev1.NodeSelectorTerm) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
		}}
	}
}

// labelsTerm and fieldsTerm are terms of one requirement.
func labelsTerm(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
}

func fieldsTerm(operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: operator, Values: values}}}
}

func limitRange(key string, item corev1.LimitRangeItem) *corev1.LimitRange {
	namespace, name, _ := strings.Cut(key, "/")
	item.Type = corev1.LimitTypeContainer
	return &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}},
	}
}

// snapshot is a cluster in which every kind is known, with the objects in it.
func snapshot(objects ...any) *cluster.Snapshot {
	nodes, daemonSets := map[string]*corev1.Node{}, map[string]*appsv1.DaemonSet{}
	claims, nodePools := map[string]*cluster.NodeClaim{}, map[string]*cluster.NodePool{}
	limitRanges, classes := map[string]*corev1.LimitRange{}, map[string]*nodev1.RuntimeClass{}
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.Node:
			nodes[o.Name] = o
		case *appsv1.DaemonSet:
			daemonSets[o.Namespace+"/"+o.Name] = o
		case *cluster.NodeClaim:
			claims[o.Name] = o
		case *cluster.NodePool:
			nodePools[o.Name] = o
		case *corev1.LimitRange:
			limitRanges[o.Namespace+"/"+o.Name] = o
		case *nodev1.RuntimeClass:
			classes[o.Name] = o
		}
	}
	return &cluster.Snapshot{
		Nodes: cluster.Known(nodes), DaemonSets: cluster.Known(daemonSets), NodeClaims: cluster.Known(claims),
		NodePools: cluster.Known(nodePools), LimitRanges: cluster.Known(limitRanges), RuntimeClasses: cluster.Known(classes),
		LastSeen: cluster.Known[corev1.Node](nil),
	}
}

// pools is a configuration with a pool for each name, of the NodePool of the same name.
func pools(names ...string) *config.WarmPoolConfiguration {
	cfg := &config.WarmPoolConfiguration{}
	for _, name := range names {
		cfg.Pools = append(cfg.Pools, config.Pool{Name: name, NodePools: []string{name}})
	}
	return cfg
}

// sizesOf are those of the pool cpu, which is made of the NodePool cpu.
func sizesOf(objects ...any) *sizing.PoolSizes {
	return sizing.NewTracker(pools("cpu")).Update(snapshot(objects...)).Pool("cpu")
}

func onlyShape(t *testing.T, sizes *sizing.PoolSizes) *sizing.Shape {
	t.Helper()
	require.Len(t, sizes.Shapes, 1)
	return sizes.Shapes[0]
}

func names(daemons []*sizing.Daemon) []string {
	var all []string
	for _, d := range daemons {
		all = append(all, d.Name)
	}
	return all
}
