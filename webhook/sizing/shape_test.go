package sizing_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/sizing"
)

// busyNode is the shape of a node of 7910m and 30000Mi with six DaemonSets that take 450m and 700Mi together.
func busyNode(t *testing.T) *sizing.Shape {
	objects := []any{
		node("ip-10-0-0-7", "cpu", "m5.2xlarge", "cpu=7910m memory=30000Mi pods=58"),
		daemonSet("kube-system/aws-node", "cpu=150m memory=300Mi"),
		daemonSet("kube-system/kube-proxy", "cpu=100m memory=50Mi"),
	}
	for _, name := range []string{"a", "b", "c"} {
		objects = append(objects, daemonSet("monitoring/"+name, "cpu=50m memory=100Mi"))
	}
	return onlyShape(t, sizesOf(append(objects, daemonSet("monitoring/d", "cpu=50m memory=50Mi"))...))
}

func TestAvailableIsAllocatableWithoutDaemonSets(t *testing.T) {
	shape := busyNode(t)
	assert.Equal(t, "cpu=7460m memory=29300Mi pods=52", text(shape.Available()))

	short := shape.Shortfalls(list("cpu=7500m memory=29000Mi pods=1"))
	require.Len(t, short, 1, "memory fits")
	s := short[0]
	assert.Equal(t, corev1.ResourceCPU, s.Resource)
	assert.Equal(t, "7500m 7910m 450m 7460m", s.Requested.String()+" "+s.Allocatable.String()+" "+s.Daemons.String()+" "+s.Available.String())
	assert.Equal(t, "ip-10-0-0-7", s.Node)
	assert.Equal(t, []string{"kube-system/aws-node", "kube-system/kube-proxy", "monitoring/a"}, names(s.Largest))
	assert.Equal(t, "m5.2xlarge", shape.String())
	assert.Equal(t, sizing.FromNodes, shape.Source)
	assert.Equal(t, 1, shape.Nodes)
}

func TestEqualIsEnoughAndOneMoreIsNot(t *testing.T) {
	shape := busyNode(t)
	for request, short := range map[string][]corev1.ResourceName{
		"cpu=7460m memory=30723276800":  nil, // 29300Mi
		"cpu=7461m memory=30723276800":  {"cpu"},
		"cpu=7460m memory=30723276801":  {"memory"},
		"cpu=7461m memory=30723276801":  {"cpu", "memory"},
		"pods=52":                       nil,
		"pods=53":                       {"pods"},
		"cpu=0 memory=0":                nil,
		"nvidia.com/gpu=1":              nil, // unknown is not 0
		"ephemeral-storage=1Ei cpu=99":  {"cpu"},
		"memory=29300Mi nvidia.com/x=0": nil,
	} {
		var found []corev1.ResourceName
		for _, s := range shape.Shortfalls(list(request)) {
			found = append(found, s.Resource)
		}
		assert.Equal(t, short, found, request)
		assert.Equal(t, len(short) == 0, sizing.Fits(list(request), shape.Available()), request)
	}
	assert.Equal(t, []corev1.ResourceName{"a.com/b", "ephemeral-storage"}, shape.Unknown(list("cpu=1 ephemeral-storage=1 a.com/b=1 c.com/d=0")))
}

func TestHyperPodNode(t *testing.T) {
	shape := onlyShape(t, sizesOf(
		node("hyperpod-i-0abc", "cpu", "ml.m5.12xlarge", "cpu=47810m memory=193044768Ki pods=234 ephemeral-storage=482947890401"),
		daemonSet("aws-hyperpod/health-monitoring-agent", "cpu=500m memory=500Mi"),
		daemonSet("kube-system/eks-pod-identity-agent", ""),
	))
	assert.Equal(t, "cpu=47310m ephemeral-storage=482947890401 memory=192532768Ki pods=232", text(shape.Available()))
	assert.Empty(t, shape.Shortfalls(list("cpu=47310m memory=192532768Ki")))
	assert.Len(t, shape.Shortfalls(list("cpu=47310m memory=192532769Ki")), 1)
	assert.Equal(t, "cpu=45310m ephemeral-storage=482947890401 memory=184144160Ki pods=231", text(shape.Beside(list("cpu=2 memory=8Gi pods=1"))))
	assert.Equal(t, []string{"kube-system/eks-pod-identity-agent"}, names(shape.Unsized()))
}

func TestBesideMayBeNegative(t *testing.T) {
	beside := busyNode(t).Beside(list("cpu=8 memory=300Mi"))
	assert.Equal(t, "cpu=-540m memory=29000Mi pods=52", text(beside))
	assert.Equal(t, "cpu=7460m memory=29300Mi pods=52", text(busyNode(t).Available()))
}

func TestDaemonSetsThatLeaveNothing(t *testing.T) {
	shape := onlyShape(t, sizesOf(node("n", "cpu", "t3.nano", "cpu=1 pods=4"), daemonSet("a/b", "cpu=1"), daemonSet("a/c", "cpu=500m")))
	assert.Equal(t, "cpu=-500m pods=2", text(shape.Available()))
	assert.Len(t, shape.Shortfalls(list("cpu=1m")), 1)
	assert.Empty(t, shape.Shortfalls(list("cpu=0")), "what asks for nothing fits, as for the scheduler")
}

func TestHosts(t *testing.T) {
	selector := func(key, value string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{key: value} }
	}
	cpus := labelled("karpenter.k8s.aws/instance-cpu", "8")
	for name, c := range map[string]struct {
		spec  func(*corev1.PodSpec)
		hosts bool
	}{
		"asks for nothing":           {spec: func(*corev1.PodSpec) {}, hosts: true},
		"the type":                   {spec: selector(corev1.LabelInstanceTypeStable, "m5"), hosts: true},
		"another type":               {spec: selector(corev1.LabelInstanceTypeStable, "c5")},
		"another architecture":       {spec: selector(corev1.LabelArchStable, "arm64")},
		"a NodePool of the pool":     {spec: selector("karpenter.sh/nodepool", "b"), hosts: true},
		"another NodePool":           {spec: selector("karpenter.sh/nodepool", "c")},
		"a zone excludes nothing":    {spec: selector(corev1.LabelTopologyZone, "us-west-2z"), hosts: true},
		"a name excludes nothing":    {spec: selector(corev1.LabelHostname, "elsewhere"), hosts: true},
		"a label that types have":    {spec: selector("karpenter.k8s.aws/instance-gpu-name", "t4")},
		"term In":                    {spec: onNodes(labelsTerm(corev1.LabelInstanceTypeStable, "In", "c5", "m5")), hosts: true},
		"term NotIn":                 {spec: onNodes(labelsTerm(corev1.LabelInstanceTypeStable, "NotIn", "c5", "m5"))},
		"term Gt":                    {spec: onNodes(labelsTerm("karpenter.k8s.aws/instance-cpu", "Gt", "7")), hosts: true},
		"term Gt, too few":           {spec: onNodes(labelsTerm("karpenter.k8s.aws/instance-cpu", "Gt", "8"))},
		"terms are alternative":      {spec: onNodes(labelsTerm(corev1.LabelInstanceTypeStable, "In", "c5"), labelsTerm(corev1.LabelArchStable, "In", "amd64")), hosts: true},
		"terms, none of which fits":  {spec: onNodes(labelsTerm(corev1.LabelInstanceTypeStable, "In", "c5"), labelsTerm(corev1.LabelArchStable, "In", "arm64"))},
		"a zone in a term":           {spec: onNodes(labelsTerm(corev1.LabelTopologyZone, "In", "us-west-2z")), hosts: true},
		"fields exclude nothing":     {spec: onNodes(fieldsTerm("In", "elsewhere")), hosts: true},
		"an empty term selects none": {spec: onNodes(corev1.NodeSelectorTerm{})},
		"no term selects none":       {spec: onNodes()},
		"a term that is no term":     {spec: onNodes(labelsTerm(corev1.LabelInstanceTypeStable, "Like", "m*"))},
		"selector and terms": {spec: func(s *corev1.PodSpec) {
			selector("karpenter.sh/nodepool", "a")(s)
			onNodes(labelsTerm(corev1.LabelInstanceTypeStable, "In", "c5"))(s)
		}},
		"one NodePool asked twice": {spec: func(s *corev1.PodSpec) {
			selector("karpenter.sh/nodepool", "a")(s)
			onNodes(labelsTerm("karpenter.sh/nodepool", "In", "b"))(s)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := &config.WarmPoolConfiguration{Pools: []config.Pool{{Name: "cpu", NodePools: []string{"a", "b"}}}}
			facts := snapshot(node("n1", "a", "m5", "cpu=8", cpus), node("n2", "b", "m5", "cpu=8", cpus))
			spec := podOf("cpu=1")
			c.spec(spec)
			assert.Equal(t, c.hosts, onlyShape(t, sizing.NewTracker(cfg).Update(facts).Pool("cpu")).Hosts(spec))
		})
	}
}
