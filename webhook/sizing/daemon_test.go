package sizing_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/sizing"
)

func TestWhichNodesADaemonSetRunsOn(t *testing.T) {
	tolerate := func(tolerations ...corev1.Toleration) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) { spec.Tolerations = tolerations }
	}
	for name, c := range map[string]struct {
		daemonSet func(*corev1.PodSpec)
		node      func(*corev1.Node)
		runs      bool
	}{
		"anywhere": {runs: true},
		"selector of the node's labels": {
			daemonSet: func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{corev1.LabelOSStable: "linux"} }, runs: true,
		},
		"selector of others":    {daemonSet: func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{corev1.LabelOSStable: "windows"} }},
		"selector of no label":  {daemonSet: func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"gpu": ""} }},
		"affinity In":           {daemonSet: onNodes(labelsTerm(corev1.LabelArchStable, "In", "arm64", "amd64")), runs: true},
		"affinity NotIn":        {daemonSet: onNodes(labelsTerm(corev1.LabelArchStable, "NotIn", "arm64", "amd64"))},
		"NotIn of an absent":    {daemonSet: onNodes(labelsTerm("compute-type", "NotIn", "fargate")), runs: true},
		"Gt":                    {daemonSet: onNodes(labelsTerm("cpus", "Gt", "7")), node: labelled("cpus", "8"), runs: true},
		"Gt of the same":        {daemonSet: onNodes(labelsTerm("cpus", "Gt", "8")), node: labelled("cpus", "8")},
		"terms are alternative": {daemonSet: onNodes(labelsTerm("a", "Exists"), labelsTerm("b", "DoesNotExist")), runs: true},
		"no term":               {daemonSet: onNodes()},
		"empty term":            {daemonSet: onNodes(corev1.NodeSelectorTerm{})},
		"name In":               {daemonSet: onNodes(fieldsTerm("In", "n")), runs: true},
		"name In others":        {daemonSet: onNodes(fieldsTerm("In", "m"))},
		"name NotIn":            {daemonSet: onNodes(fieldsTerm("NotIn", "n"))},
		"nodeName":              {daemonSet: func(s *corev1.PodSpec) { s.NodeName = "n" }, runs: true},
		"nodeName of another":   {daemonSet: func(s *corev1.PodSpec) { s.NodeName = "m" }},
		"preferred affinity": {daemonSet: func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
				{Weight: 100, Preference: labelsTerm("a", "Exists")},
			}}}
		}, runs: true},

		"taint":                    {node: tainted("nvidia.com/gpu=true:NoSchedule")},
		"taint that evicts":        {node: tainted("dedicated:NoExecute")},
		"taint that only prefers":  {node: tainted("dedicated:PreferNoSchedule"), runs: true},
		"taint, tolerated by key":  {node: tainted("nvidia.com/gpu=true:NoSchedule"), daemonSet: tolerate(corev1.Toleration{Key: "nvidia.com/gpu", Operator: "Exists"}), runs: true},
		"taint of another value":   {node: tainted("pool=a:NoSchedule"), daemonSet: tolerate(corev1.Toleration{Key: "pool", Value: "b"})},
		"taint of another effect":  {node: tainted("pool=a:NoExecute"), daemonSet: tolerate(corev1.Toleration{Key: "pool", Value: "a", Effect: "NoSchedule"})},
		"one of two tolerated":     {node: tainted("a:NoSchedule", "b:NoSchedule"), daemonSet: tolerate(corev1.Toleration{Key: "a", Operator: "Exists"})},
		"tolerates all":            {node: tainted("a:NoSchedule", "b:NoExecute"), daemonSet: everywhere, runs: true},
		"cordoned":                 {node: tainted("node.kubernetes.io/unschedulable:NoSchedule"), runs: true},
		"under pressure":           {node: tainted("node.kubernetes.io/memory-pressure:NoSchedule", "node.kubernetes.io/disk-pressure:NoSchedule"), runs: true},
		"network not there yet":    {node: tainted("node.kubernetes.io/network-unavailable:NoSchedule"), runs: true},
		"drained by Karpenter":     {node: tainted("karpenter.sh/disrupted:NoSchedule"), runs: true},
		"agent not ready yet":      {node: tainted("node.cilium.io/agent-not-ready=true:NoExecute"), runs: true},
		"start-up taint":           {node: tainted("example.com/setup:NoSchedule"), runs: true},
		"start-up taint elsewhere": {node: tainted("example.com/other:NoSchedule")},
	} {
		t.Run(name, func(t *testing.T) {
			n, ds := node("n", "cpu", "m5", "cpu=8"), daemonSet("kube-system/ds", "cpu=1")
			if c.node != nil {
				c.node(n)
			}
			if c.daemonSet != nil {
				c.daemonSet(&ds.Spec.Template.Spec)
			}
			sizes := sizesOf(n, ds,
				&cluster.NodePool{Name: "cpu", StartupTaints: parseTaints("example.com/setup:NoSchedule")},
				&cluster.NodePool{Name: "gpu", StartupTaints: parseTaints("example.com/other:NoSchedule")})
			assert.Empty(t, sizes.Problems)
			shape, want := onlyShape(t, sizes), "7"
			if !c.runs {
				want = "8"
			}
			available := shape.Offers[corev1.ResourceCPU].Available
			assert.Equal(t, want, available.String())
		})
	}
}

func TestADaemonSetOfNamedNodesMakesAShapeOfTheirs(t *testing.T) {
	for name, change := range map[string]func(*corev1.PodSpec){
		"matchFields": onNodes(fieldsTerm("In", "n1")),
		"nodeName":    func(s *corev1.PodSpec) { s.NodeName = "n1" },
		"hostname":    func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{corev1.LabelHostname: "n1"} },
	} {
		sizes := sizesOf(node("n0", "cpu", "m5", "cpu=8"), node("n1", "cpu", "m5", "cpu=8"), node("n2", "cpu", "m5", "cpu=8"), daemonSet("a/ds", "cpu=1", change))
		require.Len(t, sizes.Shapes, 2, name)
		assert.Equal(t, "cpu=8", text(sizes.Shapes[0].Available()), name)
		assert.Equal(t, 2, sizes.Shapes[0].Nodes, name)
		assert.Equal(t, "cpu=7", text(sizes.Shapes[1].Available()), name)
		assert.Equal(t, 1, sizes.Shapes[1].Nodes, name)
	}
}

func TestADaemonSetThatGoesAwayTakesNothing(t *testing.T) {
	ds := daemonSet("kube-system/ds", "cpu=1")
	ds.DeletionTimestamp = &metav1.Time{}
	shape := onlyShape(t, sizesOf(node("n", "cpu", "m5", "cpu=8"), ds))
	assert.Empty(t, shape.Daemons)
}

func TestWhatCannotBeReadOfADaemonSetIsToldByName(t *testing.T) {
	class := func(name string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.RuntimeClassName = &name }
	}
	broken := labelsTerm("cpus", "Gt", "many")
	sizes := sizesOf(
		node("n", "cpu", "m5", "cpu=64 pods=50"),
		daemonSet("a/broken", "cpu=1", onNodes(broken)),
		daemonSet("a/half-broken", "cpu=2", onNodes(broken, labelsTerm(corev1.LabelOSStable, "Exists"))),
		daemonSet("a/broken-elsewhere", "cpu=4", onNodes(broken), func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"x": "y"} }),
		daemonSet("a/operator", "cpu=8", onNodes(labelsTerm("cpus", "Near", "8"))),
		daemonSet("b/negative", "cpu=-16 memory=-1Gi"),
		daemonSet("c/kata", "cpu=0", class("kata")),
		daemonSet("c/runc", "cpu=0", class("runc")),
		daemonSet("d/relies", "memory=1Gi"),
		daemonSet("d/own", "cpu=1"),
		limitRange("d/one", corev1.LimitRangeItem{DefaultRequest: list("cpu=100m")}),
		limitRange("d/two", corev1.LimitRangeItem{DefaultRequest: list("cpu=300m")}),
		&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "runc"}},
	)
	const unread = "has a node affinity that cannot be read, and is counted wherever its other terms do not decide: "
	require.Len(t, sizes.Problems, 7)
	assert.Contains(t, sizes.Problems[0], "DaemonSet a/broken "+unread)
	assert.Contains(t, sizes.Problems[1], "DaemonSet a/half-broken "+unread)
	assert.Contains(t, sizes.Problems[2], "DaemonSet a/operator "+unread)
	assert.Equal(t, []string{
		"DaemonSet b/negative requests -16 of cpu, which is counted as 0",
		"DaemonSet b/negative requests -1Gi of memory, which is counted as 0",
		"DaemonSet c/kata is of RuntimeClass kata, which is not known; its overhead is not counted",
		"DaemonSet d/relies relies on LimitRanges that contradict each other in the default request of cpu; the largest, 300m, is counted",
	}, sizes.Problems[3:])
	shape := onlyShape(t, sizes)
	assert.Equal(t, "cpu=51700m pods=42", text(shape.Available()))
	assert.Equal(t, []string{"b/negative", "c/kata", "c/runc"}, names(shape.Unsized()))
}

func TestKindsThatCannotBeReadAreTold(t *testing.T) {
	facts := snapshot(node("n", "cpu", "m5", "cpu=8"))
	facts.DaemonSets = cluster.Unknown[appsv1.DaemonSet]("no permission")
	facts.LimitRanges = facts.LimitRanges.WithMalformed(map[string]string{"team/limits": "spec.limits: not a list"})
	assert.Equal(t, []string{
		"DaemonSets are not known (no permission): what they take is not counted",
		"LimitRange team/limits is not counted: spec.limits: not a list",
	}, sizing.NewTracker(pools("cpu")).Update(facts).Pool("cpu").Problems)

	empty := sizing.NewTracker(pools("cpu")).Update(&cluster.Snapshot{}).Pool("cpu")
	assert.Equal(t, []string{
		"DaemonSets are not known (not read): what they take is not counted",
		"LimitRanges are not known (not read): their defaults are not counted",
	}, empty.Problems)
}

// A runs everywhere, B on one type, C does not tolerate the pool's taint, D asks for what a LimitRange says.
func TestOverheadDiffersPerInstanceType(t *testing.T) {
	taint := tainted("nvidia.com/gpu=true:NoSchedule")
	sizes := sizing.NewTracker(pools("gpu")).Update(snapshot(
		node("n1", "gpu", "g5.xlarge", "cpu=3920m memory=14Gi pods=58 nvidia.com/gpu=1", taint),
		node("n2", "gpu", "g5.2xlarge", "cpu=7910m memory=29Gi pods=58 nvidia.com/gpu=1", taint),
		daemonSet("kube-system/a", "cpu=100m memory=128Mi", everywhere),
		daemonSet("kube-system/b", "cpu=1", everywhere, onNodes(labelsTerm(corev1.LabelInstanceTypeStable, "In", "g5.xlarge"))),
		daemonSet("kube-system/c", "cpu=2 memory=2Gi"),
		daemonSet("limited/d", "", everywhere),
		limitRange("limited/limits", corev1.LimitRangeItem{Default: list("cpu=500m")}),
	)).Pool("gpu")
	assert.Empty(t, sizes.Problems)
	require.Len(t, sizes.Shapes, 2)

	large, small := sizes.Shapes[0], sizes.Shapes[1]
	assert.Equal(t, "g5.xlarge", small.String())
	assert.Equal(t, []string{"kube-system/a", "kube-system/b", "limited/d"}, names(small.Daemons))
	assert.Equal(t, "cpu=2320m memory=14208Mi nvidia.com/gpu=1 pods=55", text(small.Available()))
	assert.Equal(t, "g5.2xlarge", large.String())
	assert.Equal(t, []string{"kube-system/a", "limited/d"}, names(large.Daemons))
	assert.Equal(t, "cpu=7310m memory=29568Mi nvidia.com/gpu=1 pods=56", text(large.Available()))

	fitsOne := sizing.Request(podOf("cpu=3 nvidia.com/gpu=1"), "overprovisioning", snapshot())
	assert.Empty(t, large.Shortfalls(fitsOne))
	short := small.Shortfalls(fitsOne)
	require.Len(t, short, 1)
	assert.Equal(t, []string{"kube-system/b", "limited/d", "kube-system/a"}, names(short[0].Largest))
}
