package sizing_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/sizing"
)

// plans are those of a pool with the nodes, each of its own type, without DaemonSets.
func plans(accelerators string, nodes []string, templates ...sizing.Template) (coexist, exclusive *sizing.Plan) {
	facts := map[string]*corev1.Node{}
	for i, allocatable := range nodes {
		name := string(rune('a' + i))
		facts[name] = node(name, "spaces", "type-"+name, allocatable)
	}
	cfg := &config.WarmPoolConfiguration{Pools: []config.Pool{{Name: "pool", NodePools: []string{"spaces"}}}}
	sizes := sizing.NewTracker(cfg).Update(&cluster.Snapshot{Nodes: cluster.Known(facts)})
	var isAccelerator func(corev1.ResourceName) bool
	if accelerators != "" {
		isAccelerator = func(name corev1.ResourceName) bool { return strings.HasPrefix(string(name), accelerators) }
	}
	both := sizing.Plans(sizes.Pool("pool").Shapes, templates, isAccelerator)
	return both[0], both[1]
}

func template(name, standard, smallest string) sizing.Template {
	return sizing.Template{Name: name, Default: list(standard), Smallest: list(smallest)}
}

var (
	small = template("t/small", "cpu=2 memory=8Gi", "cpu=1 memory=4Gi")
	large = template("t/large", "cpu=6 memory=24Gi", "cpu=6 memory=24Gi")
	gpu   = template("t/gpu", "cpu=4 memory=16Gi nvidia.com/gpu=1", "cpu=2 memory=8Gi nvidia.com/gpu=1")
)

func TestCoexistRequest(t *testing.T) {
	for _, c := range []struct {
		name, accelerators string
		nodes              []string
		templates          []sizing.Template
		request            string
		limitedBy          string
		faults             []string
	}{
		{"recommended", "", []string{"cpu=48 memory=180Gi"}, []sizing.Template{small}, "cpu=2 memory=8Gi", "", nil},
		{"exactly recommended", "", []string{"cpu=8 memory=32Gi"}, []sizing.Template{large}, "cpu=2 memory=8Gi", "", nil},
		{"one millicore and one byte less", "", []string{"cpu=7999m memory=34359738367"}, []sizing.Template{small, large}, "cpu=1999m memory=8589934591", "t/large", nil},
		{"least", "", []string{"cpu=6010m memory=24640Mi"}, []sizing.Template{large}, "cpu=10m memory=64Mi", "t/large", nil},
		{"below the least", "", []string{"cpu=6009m memory=32Gi"}, []sizing.Template{large}, "", "", []string{"type-a leaves cpu 9m for a placeholder beside a Workspace of t/large, which takes 10m at least"}},
		{"smallest of two types", "", []string{"cpu=48 memory=180Gi", "cpu=7 memory=180Gi"}, []sizing.Template{large}, "cpu=1 memory=8Gi", "t/large", nil},
		{"too large a template", "", []string{"cpu=4 memory=16Gi"}, []sizing.Template{small, large}, "cpu=2 memory=8Gi", "",
			[]string{"no room on type-a, even in the placeholder's place, for a Workspace of t/large (cpu 6, memory 24Gi): at most cpu 4, memory 16Gi"}},
		{"no template", "", []string{"cpu=8 memory=32Gi"}, nil, "cpu=2 memory=8Gi", "", nil},
		{"no template and no room", "", []string{"cpu=1 memory=32Gi"}, nil, "cpu=1 memory=8Gi", "", []string{"type-a has no room for a Workspace beside the placeholder"}},
		{"one pod", "", []string{"cpu=8 memory=32Gi pods=1"}, nil, "cpu=2 memory=8Gi", "", []string{"type-a has no room for a Workspace beside the placeholder"}},
		{"one accelerator", "nvidia.com/", []string{"cpu=32 memory=120Gi nvidia.com/gpu=1"}, []sizing.Template{gpu}, "cpu=2 memory=8Gi nvidia.com/gpu=1", "",
			[]string{"type-a has only one nvidia.com/gpu, which the placeholder holds: no Workspace can coexist; use Exclusive"}},
		{"one accelerator on one type: nothing coexists there, whatever the request", "nvidia.com/",
			[]string{"cpu=5 memory=20Gi nvidia.com/gpu=1", "cpu=32 memory=120Gi nvidia.com/gpu=2"}, []sizing.Template{gpu}, "cpu=2 memory=8Gi nvidia.com/gpu=1", "",
			[]string{"type-a has only one nvidia.com/gpu, which the placeholder holds: no Workspace can coexist; use Exclusive"}},
		{"accelerators", "nvidia.com/", []string{"cpu=32 memory=120Gi nvidia.com/gpu=2"}, []sizing.Template{gpu}, "cpu=2 memory=8Gi nvidia.com/gpu=1", "", nil},
		{"accelerator of no template: the one there is most of", "aws.amazon.com/neuron", []string{"cpu=8 memory=30Gi aws.amazon.com/neuron=1 aws.amazon.com/neuroncore=2"}, nil,
			"aws.amazon.com/neuroncore=1 cpu=2 memory=8Gi", "", nil},
		{"no accelerator", "nvidia.com/", []string{"cpu=32 memory=120Gi"}, []sizing.Template{gpu}, "", "",
			[]string{"no node shows an accelerator of the pool that is free: start its device plugin, or name the accelerator in sizing.allocatable"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan, _ := plans(c.accelerators, c.nodes, c.templates...)
			assert.Equal(t, config.Coexist, plan.Mode)
			assert.Equal(t, c.request, text(plan.Request))
			assert.Equal(t, c.limitedBy, plan.LimitedBy[corev1.ResourceCPU])
			assert.ElementsMatch(t, c.faults, plan.Faults)
			assert.Equal(t, len(c.faults) == 0, plan.Works)
		})
	}
}

func TestExclusiveRequest(t *testing.T) {
	for _, c := range []struct {
		name, accelerators string
		nodes              []string
		templates          []sizing.Template
		request            string
		faults             int
	}{
		{"all there is", "", []string{"cpu=47130m memory=192397600Ki pods=230 ephemeral-storage=100Gi"}, []sizing.Template{small}, "cpu=47130m memory=192397600Ki", 0},
		{"smallest of each resource", "", []string{"cpu=8 memory=40Gi", "cpu=9 memory=32Gi"}, nil, "cpu=8 memory=32Gi", 0},
		{"room on the larger type", "", []string{"cpu=8 memory=32Gi", "cpu=16 memory=64Gi"}, []sizing.Template{small, large}, "cpu=8 memory=32Gi", 2},
		{"no room for a template", "", []string{"cpu=4 memory=16Gi"}, []sizing.Template{small, large}, "cpu=4 memory=16Gi", 1},
		{"all accelerators", "nvidia.com/", []string{"cpu=32 memory=120Gi nvidia.com/gpu=4"}, []sizing.Template{gpu}, "cpu=32 memory=120Gi nvidia.com/gpu=4", 0},
		{"one name for a device", "aws.amazon.com/neuron", []string{"cpu=8 memory=30Gi aws.amazon.com/neuron=1 aws.amazon.com/neuroncore=2"},
			[]sizing.Template{template("t/n", "cpu=1 aws.amazon.com/neuron=1", "cpu=1 aws.amazon.com/neuron=1")}, "aws.amazon.com/neuron=1 cpu=8 memory=30Gi", 0},
		{"all kinds where no template tells", "nvidia.com/", []string{"cpu=8 memory=30Gi nvidia.com/mig-1g.5gb=3 nvidia.com/mig-2g.10gb=2"}, nil,
			"cpu=8 memory=30Gi nvidia.com/mig-1g.5gb=3 nvidia.com/mig-2g.10gb=2", 0},
		{"what templates ask for beside", "", []string{"cpu=8 memory=30Gi hugepages-2Mi=1Gi"}, []sizing.Template{template("t/h", "cpu=1 hugepages-2Mi=512Mi", "cpu=1")},
			"cpu=8 hugepages-2Mi=1Gi memory=30Gi", 0},
		{"no accelerator is free", "nvidia.com/", []string{"cpu=8 memory=30Gi nvidia.com/gpu=0"}, nil, "", 1},
		{"nothing left", "", []string{"cpu=0 memory=30Gi"}, []sizing.Template{small}, "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, plan := plans(c.accelerators, c.nodes, c.templates...)
			assert.Equal(t, config.Exclusive, plan.Mode)
			assert.Equal(t, c.request, text(plan.Request))
			assert.Len(t, plan.Faults, c.faults, "%q", plan.Faults)
			assert.Equal(t, c.faults == 0, plan.Works)
		})
	}
}

func TestRoomsOfPlans(t *testing.T) {
	coexist, exclusive := plans("nvidia.com/", []string{"cpu=8 memory=32Gi pods=58 nvidia.com/gpu=1", "cpu=16 memory=64Gi pods=58 nvidia.com/gpu=4"}, gpu)
	rooms := func(plan *sizing.Plan) (all []string) {
		for _, room := range plan.Rooms {
			all = append(all, room.Shape+": "+text(room.Coexist)+" | "+text(room.Preempt))
		}
		return all
	}
	assert.Equal(t, []string{
		"type-a:  | cpu=8 memory=32Gi nvidia.com/gpu=1",
		"type-b: cpu=14 memory=56Gi nvidia.com/gpu=3 | cpu=16 memory=64Gi nvidia.com/gpu=4",
	}, rooms(coexist))
	assert.Equal(t, []sizing.TemplateRoom{{Name: "t/gpu", CoexistsOn: []string{"type-b"}, PreemptsOn: []string{"type-a", "type-b"}}}, coexist.Templates)
	assert.Equal(t, []string{
		"type-a:  | cpu=8 memory=32Gi nvidia.com/gpu=1",
		"type-b: cpu=8 memory=32Gi nvidia.com/gpu=3 | cpu=16 memory=64Gi nvidia.com/gpu=4",
	}, rooms(exclusive))
}

// Equal is enough, and one unit more is not: nothing is rounded.
func TestRequestsFitExactly(t *testing.T) {
	const available = "cpu=6500m memory=26000000001"
	coexist, exclusive := plans("", []string{available}, large)
	room := list(available)
	fits := func(parts ...corev1.ResourceList) bool {
		sum := corev1.ResourceList{}
		for _, part := range parts {
			for name, quantity := range part {
				total := sum[name]
				total.Add(quantity)
				sum[name] = total
			}
		}
		return sizing.Fits(sum, room)
	}
	assert.True(t, fits(exclusive.Request))
	assert.True(t, fits(coexist.Request, large.Default))
	assert.True(t, fits(coexist.Request, coexist.Rooms[0].Coexist))
	for _, more := range []string{"cpu=1m", "memory=1"} {
		assert.False(t, fits(exclusive.Request, list(more)))
		assert.False(t, fits(coexist.Request, large.Default, list(more)))
		assert.False(t, fits(coexist.Request, coexist.Rooms[0].Coexist, list(more)))
	}
}

func TestTemplateOf(t *testing.T) {
	minimum := list("cpu=500m memory=1Gi")
	cpu, memory := minimum["cpu"], minimum["memory"]
	got := sizing.TemplateOf(&cluster.WorkspaceTemplate{
		Namespace: "n", Name: "t",
		DefaultResources: corev1.ResourceRequirements{Requests: list("cpu=2"), Limits: list("cpu=4 nvidia.com/gpu=1")},
		Bounds:           map[corev1.ResourceName]cluster.Bounds{"cpu": {Min: &cpu}, "memory": {Min: &memory}, "nvidia.com/gpu": {}},
	})
	assert.Equal(t, "n/t", got.Name)
	assert.Equal(t, "cpu=2 nvidia.com/gpu=1", text(got.Default))
	assert.Equal(t, "cpu=500m memory=1Gi nvidia.com/gpu=1", text(got.Smallest))
}
