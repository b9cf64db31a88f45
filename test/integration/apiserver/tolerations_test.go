package apiserver_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	dedicated     = `{key: dedicated, value: notebooks, effect: NoSchedule}`
	gpuExists     = `{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}`
	ownerNoSecond = `{key: example.com/owner, operator: Equal, value: notebooks, effect: NoExecute}`
	teamExists    = `{key: example.com/team, operator: Exists, effect: NoSchedule}`
	neuronBoth    = `{key: aws.amazon.com/neuron, operator: Exists, effect: NoSchedule}, {key: aws.amazon.com/neuroncore, operator: Exists, effect: NoSchedule}`
)

// What is sent comes out first and unchanged; what is added follows.
func TestTolerations(t *testing.T) {
	cases := []struct {
		name, pool, sent, added string
		excess                  string // that a placeholder is warned of
	}{
		{name: "key without operator", pool: "gpu-a", sent: dedicated + `, {key: nvidia.com/gpu, effect: NoSchedule}`, added: gpuExists,
			excess: "placeholder-tolerations-excess: …nvidia.com/gpu"},
		{name: "key with Exists", pool: "gpu-a", sent: dedicated + `, {key: nvidia.com/gpu, operator: Exists}`},
		{name: "Exists alone", pool: "gpu-a", sent: `{operator: Exists}`, excess: "placeholder-tolerations-excess: …every taint"},
		{name: "Equal without effect", pool: "gpu-a", sent: `{key: nvidia.com/gpu, operator: Equal, value: "true"}, ` + dedicated},
		{name: "another effect", pool: "gpu-a", sent: dedicated + `, {key: nvidia.com/gpu, operator: Exists, effect: NoExecute}`, added: gpuExists,
			excess: "placeholder-tolerations-excess: …nvidia.com/gpu:NoExecute"},
		{name: "NoExecute for a time", pool: "evicting", sent: `{key: example.com/owner, operator: Exists, effect: NoExecute, tolerationSeconds: 300}`, added: ownerNoSecond},
		{name: "NoExecute permanently", pool: "evicting", sent: ownerNoSecond},
		{name: "another value", pool: "evicting", sent: `{key: example.com/owner, value: others, effect: NoExecute}`, added: ownerNoSecond,
			excess: "placeholder-tolerations-excess: …example.com/owner=others:NoExecute"},
		{name: "of all NoSchedule taints", pool: "gpu-a", sent: `{operator: Exists, effect: NoSchedule}`, excess: "placeholder-tolerations-excess: …every taint"},
		{name: "none sent, two taints", pool: "gpu-a", added: gpuExists + `, {key: dedicated, operator: Equal, value: notebooks, effect: NoSchedule}`},
		{name: "none sent, no taints", pool: "cpu-a"},
		{name: "two values of one key", pool: "teams", added: teamExists},
		{name: "one of two values of one key", pool: "teams", sent: `{key: example.com/team, value: a, effect: NoSchedule}`, added: teamExists},
		{name: "two taints of one vendor", pool: "neuron", added: neuronBoth},
		{name: "one of two taints of one vendor", pool: "neuron", sent: `{key: aws.amazon.com/neuron, operator: Exists, effect: NoSchedule}`,
			added: `{key: aws.amazon.com/neuroncore, operator: Exists, effect: NoSchedule}`},
	}
	u := newUser(t)
	devices := map[string][]corev1.ResourceName{"gpu-a": {gpu}, "neuron": {"aws.amazon.com/neuroncore"}}
	for _, s := range subjects {
		for _, c := range cases {
			t.Run(c.name+"/"+s.name, func(t *testing.T) {
				object, spec := s.make(t, c.pool, devices[c.pool]...)
				spec.NodeSelector = map[string]string{"karpenter.sh/nodepool": c.pool}
				if c.pool == "neuron" {
					spec.NodeSelector["karpenter.sh/nodepool"] = "spaces-neuron"
				}
				spec.Tolerations = tolerations(t, c.sent)
				o := u.create(t, u.namespace(t), object)
				o.spec.Tolerations = append(o.spec.Tolerations, tolerations(t, c.added)...)
				o.same(t)
				if _, isPlaceholder := object.(*appsv1.Deployment); isPlaceholder && c.excess != "" {
					warned(t, o.warnings, c.excess)
				} else {
					warned(t, o.warnings)
				}
			})
		}
	}
}

func tolerations(t *testing.T, text string) []corev1.Toleration {
	t.Helper()
	return fromYAML[[]corev1.Toleration](t, "["+text+"]")
}

// By what it asks for, an object gets the pool, and by the pool's taints its tolerations. The resource's
// own name is not what is tolerated.
func TestPoolByResources(t *testing.T) {
	const spacesGPU = `{key: karpenter.sh/nodepool, operator: In, values: [spaces-gpu]}`
	const spacesCPU = `{key: karpenter.sh/nodepool, operator: In, values: [spaces-cpu]}`
	const spacesNeuron = `{key: karpenter.sh/nodepool, operator: In, values: [spaces-neuron]}`
	limits := func(name, quantity string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceName(name): resource.MustParse(quantity)}}
	}
	main := func(name, quantity string) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) { spec.Containers[0].Resources = limits(name, quantity) }
	}
	initial := func(policy *corev1.ContainerRestartPolicy) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) {
			spec.InitContainers = append(spec.InitContainers, corev1.Container{Name: "prepare", Image: "example.com/prepare:1",
				RestartPolicy: policy, Resources: limits("nvidia.com/gpu", "1")})
		}
	}
	always := corev1.ContainerRestartPolicyAlways
	cases := []struct {
		name            string
		ask             func(*corev1.PodSpec)
		affinity, added string
		warning         string
	}{
		{name: "nothing", ask: func(*corev1.PodSpec) {}, affinity: spacesCPU},
		{name: "limits only", ask: main("nvidia.com/gpu", "1"), affinity: spacesGPU, added: gpuExists},
		{name: "quantity 0", ask: main("nvidia.com/gpu", "0"), affinity: spacesCPU},
		{name: "init container", ask: initial(nil), affinity: spacesGPU, added: gpuExists},
		{name: "sidecar", ask: initial(&always), affinity: spacesGPU, added: gpuExists},
		{name: "MIG", ask: main("nvidia.com/mig-1g.5gb", "1"), affinity: spacesGPU, added: gpuExists},
		{name: "time slices", ask: main("nvidia.com/gpu.shared", "1"), affinity: spacesGPU, added: gpuExists},
		{name: "shared MIG", ask: main("nvidia.com/mig-1g.5gb.shared", "1"), affinity: spacesGPU, added: gpuExists},
		{name: "Neuron cores", ask: main("aws.amazon.com/neuroncore", "2"), affinity: spacesNeuron, added: neuronBoth},
		{name: "no such pool", ask: main("amd.com/gpu", "1"), warning: "workspace-no-pool: no pool offers amd.com/gpu"},
		{name: "network devices choose no pool", ask: main("vpc.amazonaws.com/efa", "1"), affinity: spacesCPU},
	}
	u := newUser(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			pod := workspacePod("")
			c.ask(&pod.Spec)
			o := u.create(t, u.namespace(t), pod)
			if c.affinity != "" {
				o.spec.Affinity = &corev1.Affinity{NodeAffinity: fromYAML[*corev1.NodeAffinity](t, requiredTerm(c.affinity))}
			}
			o.spec.Tolerations = append(o.spec.Tolerations, tolerations(t, c.added)...)
			o.same(t)
			if c.warning == "" {
				warned(t, o.warnings)
			} else {
				warned(t, o.warnings, c.warning)
			}
		})
	}
}

// The API server copies limits to requests in Pods, not in templates: there limits alone must count as well.
func TestPlaceholderOfUnlabelledPool(t *testing.T) {
	u := newUser(t)
	for name, quantity := range map[string]string{"limits only": "1", "quantity 0": "0"} {
		t.Run(name, func(t *testing.T) {
			d := placeholder(t, "")
			spec := &d.Spec.Template.Spec
			spec.Containers[0].Resources.Limits["aws.amazon.com/neuron"] = resource.MustParse(quantity)
			spec.InitContainers[0].Image = neuronImage
			if quantity == "0" {
				spec.InitContainers[0].Image = cpuImage
				spec.NodeSelector = map[string]string{"karpenter.sh/nodepool": "spaces-cpu"}
			}
			o := u.create(t, u.namespace(t), d)
			if quantity == "1" {
				o.spec.Affinity.NodeAffinity = fromYAML[*corev1.NodeAffinity](t, requiredTerm(`{key: karpenter.sh/nodepool, operator: In, values: [spaces-neuron]}`))
				o.spec.Tolerations = tolerations(t, neuronBoth)
			}
			o.same(t)
			assert.Empty(t, o.warnings)
		})
	}
}

// What mutation would have filled is judged too, for those who come past it.
func TestValidationWithoutMutation(t *testing.T) {
	u := newUser(t)
	without(t, &admissionregistrationv1.MutatingWebhookConfiguration{})
	field := "spec.template.spec.tolerations"
	d := complete(t)
	d.Spec.Template.Spec.Tolerations = nil
	o := u.create(t, u.namespace(t), d)
	denied(t, o.err, cause{field, "nvidia.com/gpu=true:NoSchedule of pool gpu-a"}, cause{field, "dedicated=notebooks:NoSchedule of pool gpu-a"})

	e := placeholder(t, "evicting")
	e.Spec.Template.Spec.NodeSelector = map[string]string{"karpenter.sh/nodepool": "evicting"}
	e.Spec.Template.Spec.Tolerations = tolerations(t, `{key: example.com/owner, operator: Exists, effect: NoExecute, tolerationSeconds: 300}`)
	denied(t, u.create(t, u.namespace(t), e).err, cause{field, "example.com/owner=notebooks:NoExecute of pool evicting is tolerated for a limited time only"})
}
