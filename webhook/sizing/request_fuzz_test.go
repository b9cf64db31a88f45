package sizing_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podresource "k8s.io/component-helpers/resource"

	"warmpool.sh/webhook/sizing"
)

// admitted does to a pod, in order, what an API server of 1.37 does to its resources until it is stored.
func admitted(pod *corev1.Pod, limits *corev1.LimitRange, class *nodev1.RuntimeClass) {
	spec := &pod.Spec
	var containers []*corev1.ResourceRequirements
	for i := range spec.InitContainers {
		containers = append(containers, &spec.InitContainers[i].Resources)
	}
	for i := range spec.Containers {
		containers = append(containers, &spec.Containers[i].Resources)
	}
	for _, r := range containers { // decoding, SetDefaults_Pod
		r.Requests, r.Limits = inThousandths(r.Requests), inThousandths(r.Limits)
		fill(r.Requests, r.Limits)
	}
	for _, r := range containers { // LimitRanger
		for _, item := range limits.Spec.Limits {
			defaultLimit, defaultRequest := item.Default.DeepCopy(), item.DefaultRequest.DeepCopy()
			fill(defaultLimit, item.Max)
			fill(defaultRequest, defaultLimit)
			fill(defaultRequest, item.Min)
			fill(r.Limits, defaultLimit)
			fill(r.Requests, defaultRequest)
		}
	}
	if class.Overhead != nil { // RuntimeClass
		spec.Overhead = class.Overhead.PodFixed
	}
	if spec.Resources == nil || len(spec.Resources.Requests)+len(spec.Resources.Limits) == 0 {
		return
	}
	// DefaultPodLevelResources, as the pod is stored
	r := spec.Resources
	r.Requests, r.Limits = inThousandths(r.Requests), inThousandths(r.Limits)
	for name, quantity := range podresource.AggregateContainerLimits(pod, podresource.PodResourcesOptions{}) {
		_, requested := r.Requests[name]
		if _, limited := r.Limits[name]; isHugePages(name) && !requested && !limited {
			r.Limits[name] = quantity
		}
	}
	for name, quantity := range podresource.AggregateContainerRequests(pod, podresource.PodResourcesOptions{}) {
		if _, requested := r.Requests[name]; !requested && (name == corev1.ResourceCPU || name == corev1.ResourceMemory) {
			r.Requests[name] = quantity
		}
	}
	for name, quantity := range r.Limits {
		if _, requested := r.Requests[name]; !requested && podresource.IsSupportedPodLevelResource(name) {
			r.Requests[name] = quantity
		}
	}
}

func isHugePages(name corev1.ResourceName) bool { return strings.HasPrefix(string(name), "hugepages-") }

func inThousandths(l corev1.ResourceList) corev1.ResourceList {
	rounded := corev1.ResourceList{}
	for name, quantity := range l {
		quantity.RoundUp(resource.Milli)
		rounded[name] = quantity
	}
	return rounded
}

func fill(into, from corev1.ResourceList) {
	for name, quantity := range from {
		if _, ok := into[name]; !ok {
			into[name] = quantity
		}
	}
}

// resources makes up a list, which may be empty; never nil.
func (c changes) resources() corev1.ResourceList {
	l := corev1.ResourceList{}
	for range c.IntN(4) {
		entry := c.oneOf("cpu=0", "cpu=1", "cpu=1500m", "cpu=0.3m", "memory=1Gi", "memory=700m", "memory=1G",
			"ephemeral-storage=3Gi", "nvidia.com/gpu=1", "nvidia.com/gpu=0", "hugepages-2Mi=2Mi", "hugepages-2Mi=4Mi")
		name, _, _ := strings.Cut(entry, "=")
		l[corev1.ResourceName(name)] = list(entry)[corev1.ResourceName(name)]
	}
	return l
}

func (c changes) containers(n int) []corev1.Container {
	all := make([]corev1.Container, n)
	for i := range all {
		all[i].Resources = corev1.ResourceRequirements{Requests: c.resources(), Limits: c.resources()}
		for name, quantity := range all[i].Resources.Limits {
			if isHugePages(name) { // validation: request and limit are the same
				all[i].Resources.Requests[name] = quantity
			}
		}
		for name := range all[i].Resources.Requests {
			if _, limited := all[i].Resources.Limits[name]; isHugePages(name) && !limited {
				delete(all[i].Resources.Requests, name)
			}
		}
	}
	return all
}

func FuzzRequest(f *testing.F) {
	for seed := range uint64(500) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		c := changes{rand.New(rand.NewPCG(seed, 1))}
		pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: c.containers(c.IntN(4)), Containers: c.containers(1 + c.IntN(3))}}
		for i := range pod.Spec.InitContainers {
			if c.IntN(2) == 0 {
				pod.Spec.InitContainers[i].RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
			}
		}
		if c.IntN(2) == 0 {
			pod.Spec.Resources = &corev1.ResourceRequirements{Requests: c.resources(), Limits: c.resources()}
		}
		limits := limitRange("team/limits", corev1.LimitRangeItem{})
		if c.IntN(2) == 0 {
			limits = limitRange("team/limits", corev1.LimitRangeItem{
				Default: c.cpuAndMemory(), DefaultRequest: c.cpuAndMemory(), Min: c.cpuAndMemory(), Max: c.cpuAndMemory(),
			})
		}
		class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "kata"}}
		if c.IntN(2) == 0 {
			class.Overhead = &nodev1.Overhead{PodFixed: c.cpuAndMemory()}
		}
		pod.Spec.RuntimeClassName = &class.Name

		got := sizing.Request(&pod.Spec, "team", snapshot(limits, class))
		admitted(pod, limits, class)
		want := podresource.PodRequests(pod, podresource.PodResourcesOptions{})
		want[corev1.ResourcePods] = resource.MustParse("1")
		require.Len(t, got, len(want), "%s against %s", text(got), text(want))
		for name, quantity := range want {
			found := got[name]
			if name == corev1.ResourceCPU {
				require.Equal(t, quantity.MilliValue(), found.MilliValue(), name)
			}
			require.Equal(t, quantity.Value(), found.Value(), name)
		}
	})
}

func (c changes) cpuAndMemory() corev1.ResourceList {
	l := corev1.ResourceList{}
	if c.IntN(2) == 0 {
		l[corev1.ResourceCPU] = resource.MustParse(c.oneOf("1", "250m", "0"))
	}
	if c.IntN(2) == 0 {
		l[corev1.ResourceMemory] = resource.MustParse(c.oneOf("1Gi", "64Mi"))
	}
	return l
}
