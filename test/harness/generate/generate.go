// Package generate makes random clusters, Workspace pods and placeholders for the tests of laws that must hold for all
// of them. Values come from small sets, so that selectors, labels and taints really meet.
package generate

import (
	"math/rand/v2"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
)

var (
	poolNames     = []string{"a", "b", "c", "d"}
	instanceTypes = []string{"ml.m5.4xlarge", "ml.g5.8xlarge", "ml.trn1.2xlarge"}
	accelerators  = []string{"nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "aws.amazon.com/neuron", "amd.com/gpu", "example.com/npu", "vpc.amazonaws.com/efa"}
	taintKeys     = []string{"nvidia.com/gpu", "dedicated", "aws.amazon.com/neuron", "node.kubernetes.io/unreachable", "karpenter.sh/disrupted"}
	effects       = []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule}
	labelKeys     = []string{"karpenter.sh/nodepool", corev1.LabelInstanceTypeStable, corev1.LabelInstanceType, corev1.LabelArchStable, "team", "cores"}
	labelValues   = map[string][]string{
		"karpenter.sh/nodepool":        {"a", "b", "c", "elsewhere"},
		corev1.LabelInstanceTypeStable: instanceTypes,
		corev1.LabelInstanceType:       instanceTypes,
		corev1.LabelArchStable:         {"amd64", "arm64"},
		"cores":                        {"2", "8", "32"},
		"team":                         {"x", "y", "7"},
	}
	hostnames = []string{"h", "h0", "h1", "unknown"}
	operators = []corev1.NodeSelectorOperator{
		corev1.NodeSelectorOpIn, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists,
		corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt,
	}
)

// Rand is a source of random choices; equal seeds give equal objects.
type Rand struct{ *rand.Rand }

// New makes a Rand from a seed.
func New(seed uint64) Rand { return Rand{rand.New(rand.NewPCG(seed, 0))} }

func pick[T any](r Rand, from []T) T { return from[r.IntN(len(from))] }

func (r Rand) chance(percent int) bool { return r.IntN(100) < percent }

// several calls f for up to most elements, none included, and gathers them.
func several[T any](r Rand, most int, f func() T) []T {
	var all []T
	for range r.IntN(most + 1) {
		all = append(all, f())
	}
	return all
}

// Config makes a configuration of one to four pools; it is complete but not always what validation would accept.
func (r Rand) Config() *config.WarmPoolConfiguration {
	cfg := &config.WarmPoolConfiguration{}
	for i := range 1 + r.IntN(len(poolNames)) {
		pool := config.Pool{Name: poolNames[i], NodePools: []string{poolNames[i]}}
		if r.chance(20) {
			pool.NodePools = append(pool.NodePools, poolNames[i]+"2")
		}
		if r.chance(15) {
			values := append(several(r, 1, func() string { return "y" }), "x")
			if !slices.ContainsFunc(cfg.Pools, func(p config.Pool) bool { return p.NodeLabel != nil }) { // a node belongs to one pool
				pool.NodePools, pool.NodeLabel = nil, &config.NodeLabel{Key: "team", Values: values}
			}
		}
		if r.chance(60) {
			pool.Accelerators = []string{pick(r, []string{"nvidia.com/*", "aws.amazon.com/neuron*", "example.com/npu"})}
		}
		if r.chance(20) {
			pool.NodeTaints = []string{"sagemaker.amazonaws.com/node-health-status=Schedulable:NoSchedule"}
		}
		pool.Templates = []config.TemplateRef{{Namespace: "shared", Name: poolNames[i]}}
		r.prePull(&pool)
		cfg.Pools = append(cfg.Pools, pool)
	}
	r.imageNames(&cfg.Workspaces)
	config.SetDefaults(cfg)
	return cfg
}

// Snapshot makes the NodePools, PriorityClasses and WorkspaceTemplates of a cluster; some NodePools of the configuration may be missing,
// some kinds unknown.
func (r Rand) Snapshot() *cluster.Snapshot {
	nodePools := map[string]*cluster.NodePool{}
	for _, name := range []string{"a", "a2", "b", "c", "c2", "d", "elsewhere"} {
		if r.chance(85) {
			nodePools[name] = r.nodePool(name)
		}
	}
	never := corev1.PreemptNever
	snapshot := &cluster.Snapshot{
		NodePools: cluster.Known(nodePools),
		Nodes:     cluster.Known(r.nodes()),
		PriorityClasses: cluster.Known(map[string]*schedulingv1.PriorityClass{
			"overprovisioning-placeholder": {ObjectMeta: metav1.ObjectMeta{Name: "overprovisioning-placeholder"}, Value: -1000, PreemptionPolicy: &never},
		}),
	}
	if r.chance(10) {
		snapshot.NodePools = cluster.Unknown[cluster.NodePool]("no NodePool CRD")
	}
	snapshot.Templates = r.templates()
	return snapshot
}

func (r Rand) nodePool(name string) *cluster.NodePool {
	np := &cluster.NodePool{Name: name, Taints: several(r, 3, r.taint), StartupTaints: several(r, 1, r.taint)}
	np.Requirements = several(r, 2, func() corev1.NodeSelectorRequirement {
		key := pick(r, labelKeys[1:])
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{pick(r, labelValues[key])}}
	})
	if r.chance(30) {
		// Gte and Lte are Karpenter's own.
		operator := pick(r, []corev1.NodeSelectorOperator{"Gte", "Lte", corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt})
		np.Requirements = append(np.Requirements, corev1.NodeSelectorRequirement{Key: "cores", Operator: operator, Values: []string{pick(r, labelValues["cores"])}})
	}
	if r.chance(20) {
		np.Requirements = append(np.Requirements, corev1.NodeSelectorRequirement{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: instanceTypes})
		np.MinValues = map[string]int{corev1.LabelInstanceTypeStable: 2}
	}
	if r.chance(30) {
		np.Labels = map[string]string{"team": pick(r, labelValues["team"])}
	}
	return np
}

func (r Rand) taint() corev1.Taint {
	return corev1.Taint{Key: pick(r, taintKeys), Value: pick(r, []string{"", "true", "notebooks"}), Effect: pick(r, effects)}
}

// WorkspacePod makes a pod as the Workspace controller might, with whatever a user may have put into it.
func (r Rand) WorkspacePod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "workspace-w-", Labels: map[string]string{"workspace.jupyter.org/workspace-name": "w"}}}
	if r.chance(25) {
		pod.Labels["warmpool.sh/pool"] = pick(r, append(poolNames, "nowhere"))
	}
	if r.chance(40) {
		pod.Labels["workspace.jupyter.org/template-name"], pod.Labels["workspace.jupyter.org/template-namespace"] = pick(r, poolNames), pick(r, []string{"shared", "shared", "team"})
	}
	pod.Spec = r.PodSpec()
	if r.chance(60) {
		pod.Spec.Containers[0].Image = pick(r, templateImages)
	}
	if r.chance(30) {
		r.preferPods(&pod.Spec)
	}
	return pod
}

// Placeholder makes a placeholder Deployment, more or less right.
func (r Rand) Placeholder() *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "ph", Namespace: "warm", Labels: map[string]string{"app": "spaces-overprovisioning"}}}
	if r.chance(50) {
		d.Labels["warmpool.sh/pool"] = pick(r, append(poolNames, "nowhere"))
	}
	d.Spec.Template.Spec = r.PodSpec()
	r.synced(d)
	if r.chance(80) {
		d.Spec.Template.Labels = map[string]string{"app": "ph"}
	}
	if r.chance(50) {
		d.Spec.Template.Annotations = map[string]string{pick(r, []string{"karpenter.sh/do-not-disrupt", "a/b~c"}): pick(r, []string{"true", "True", "10m"})}
	}
	if r.chance(70) {
		d.Spec.Strategy.Type = pick(r, []appsv1.DeploymentStrategyType{appsv1.RollingUpdateDeploymentStrategyType, appsv1.RecreateDeploymentStrategyType})
	}
	if d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType && r.chance(50) {
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: r.intOrPercent(), MaxUnavailable: r.intOrPercent()}
	}
	return d
}

func (r Rand) intOrPercent() *intstr.IntOrString {
	if r.chance(25) {
		return nil
	}
	value := pick(r, []intstr.IntOrString{intstr.FromString("25%"), intstr.FromInt32(0), intstr.FromInt32(1), intstr.FromString("bad")})
	return &value
}

// PodSpec makes a spec with random accelerators, node selection and tolerations.
func (r Rand) PodSpec() corev1.PodSpec {
	spec := corev1.PodSpec{Containers: []corev1.Container{r.container("main")}, Tolerations: several(r, 4, r.toleration)}
	if r.chance(30) {
		spec.InitContainers = []corev1.Container{r.container("pull-workspace-image")}
	}
	if r.chance(25) {
		key := pick(r, labelKeys)
		spec.NodeSelector = map[string]string{key: pick(r, labelValues[key])}
		if r.chance(15) {
			spec.NodeSelector[corev1.LabelHostname] = pick(r, hostnames)
		}
	}
	if r.chance(50) {
		spec.Affinity = r.affinity()
	}
	if r.chance(30) {
		spec.TerminationGracePeriodSeconds = pick(r, []*int64{new(int64(0)), new(int64(30)), new(int64(60))})
	}
	if r.chance(30) {
		spec.PriorityClassName = pick(r, []string{"overprovisioning-placeholder", "other"})
	}
	return spec
}

func (r Rand) container(name string) corev1.Container {
	c := corev1.Container{Name: name, Image: "registry.example/" + name + ":1"}
	if r.chance(50) {
		list := corev1.ResourceList{corev1.ResourceName(pick(r, accelerators)): resource.MustParse(pick(r, []string{"1", "1", "2", "0"}))}
		if r.chance(50) {
			c.Resources.Requests = list
		}
		c.Resources.Limits = list
	}
	return c
}

func (r Rand) toleration() corev1.Toleration {
	t := corev1.Toleration{
		Key:      pick(r, append(taintKeys, "")),
		Operator: pick(r, []corev1.TolerationOperator{"", corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpExists}),
		Effect:   pick(r, append(effects, "")),
	}
	if t.Operator != corev1.TolerationOpExists {
		t.Value = pick(r, []string{"", "true", "notebooks"})
	}
	if r.chance(15) {
		t.TolerationSeconds = new(int64(300))
	}
	return t
}
