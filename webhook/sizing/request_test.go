package sizing_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/sizing"
)

func TestRequestOfContainers(t *testing.T) {
	type containers = []corev1.Container
	for name, c := range map[string]struct {
		init, main containers
		want       string
	}{
		"nothing":                       {main: containers{container("", "")}, want: "pods=1"},
		"sum of containers":             {main: containers{container("cpu=1 memory=1Gi", ""), container("cpu=500m", "")}, want: "cpu=1500m memory=1Gi pods=1"},
		"largest init step, each alone": {init: containers{container("cpu=10m memory=4Gi", ""), container("cpu=3", "")}, main: containers{container("cpu=2 memory=1Gi", "")}, want: "cpu=3 memory=4Gi pods=1"},
		"init steps are not summed":     {init: containers{container("cpu=2", ""), container("cpu=2", "")}, main: containers{container("cpu=2", "")}, want: "cpu=2 pods=1"},
		"sidecar counts beside containers": {
			init: containers{sidecar("cpu=1")}, main: containers{container("cpu=2", "")}, want: "cpu=3 pods=1",
		},
		"sidecar that starts before a step counts in it": {
			init: containers{sidecar("cpu=1"), container("cpu=4", "")}, main: containers{container("cpu=2", "")}, want: "cpu=5 pods=1",
		},
		"sidecar that starts after a step does not": {
			init: containers{container("cpu=4", ""), sidecar("cpu=1")}, main: containers{container("cpu=2", "")}, want: "cpu=4 pods=1",
		},
		"limits are requests where none are":   {main: containers{container("memory=1Gi", "cpu=2 memory=4Gi")}, want: "cpu=2 memory=1Gi pods=1"},
		"limits of an init step too":           {init: containers{container("", "memory=8Gi")}, main: containers{container("memory=1Gi", "")}, want: "memory=8Gi pods=1"},
		"request of zero is a request":         {main: containers{container("cpu=0", "cpu=2")}, want: "cpu=0 pods=1"},
		"extended resources, by limits":        {main: containers{container("", "nvidia.com/gpu=1"), container("", "nvidia.com/gpu=1")}, want: "nvidia.com/gpu=2 pods=1"},
		"hugepages and ephemeral-storage":      {main: containers{container("ephemeral-storage=2Gi", "hugepages-2Mi=64Mi")}, want: "ephemeral-storage=2Gi hugepages-2Mi=64Mi pods=1"},
		"thousandths are rounded by container": {main: containers{container("cpu=0.1m", ""), container("cpu=0.1m", "")}, want: "cpu=2m pods=1"},
		"bytes are rounded up over all":        {main: containers{container("memory=500m", ""), container("memory=600m", "")}, want: "memory=2 pods=1"},
		"bytes stay bytes":                     {main: containers{container("memory=1073741825", "")}, want: "memory=1073741825 pods=1"},
		"more than 64 bits does not panic":     {main: containers{container("memory=8Ei", ""), container("memory=8Ei", "")}, want: "memory=18446744073709551614 pods=1"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &corev1.PodSpec{InitContainers: c.init, Containers: c.main}
			before := spec.DeepCopy()
			assert.Equal(t, c.want, text(sizing.Request(spec, "team", snapshot())))
			assert.Equal(t, before, spec, "the spec stays as it was")
		})
	}
}

func TestRequestOfPodLevelResources(t *testing.T) {
	for name, c := range map[string]struct{ requests, limits, container, containerLimits, want string }{
		"requests win over the sum":              {requests: "cpu=4 memory=8Gi", container: "cpu=1 memory=1Gi", want: "cpu=4 memory=8Gi pods=1"},
		"smaller ones too":                       {requests: "cpu=500m", container: "cpu=1", want: "cpu=500m pods=1"},
		"others are summed":                      {requests: "cpu=4", container: "cpu=1 memory=1Gi nvidia.com/gpu=1", want: "cpu=4 memory=1Gi nvidia.com/gpu=1 pods=1"},
		"limits alone where no container asks":   {limits: "cpu=4", container: "memory=1Gi", want: "cpu=4 memory=1Gi pods=1"},
		"limits give way to what containers ask": {limits: "cpu=4", container: "cpu=1", want: "cpu=1 pods=1"},
		"limits give way to containers' limits":  {limits: "cpu=4", containerLimits: "cpu=2", want: "cpu=2 pods=1"},
		"requests before limits":                 {requests: "cpu=3", limits: "cpu=4", container: "cpu=1", want: "cpu=3 pods=1"},
		"hugepages are not overcommitted":        {limits: "hugepages-2Mi=8Mi", containerLimits: "hugepages-2Mi=4Mi", want: "hugepages-2Mi=8Mi pods=1"},
		"empty ones say nothing":                 {container: "cpu=1", want: "cpu=1 pods=1"},
		"unsupported ones say nothing":           {requests: "ephemeral-storage=4Gi", limits: "nvidia.com/gpu=2", container: "cpu=1", want: "cpu=1 pods=1"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &corev1.PodSpec{
				Containers: []corev1.Container{container(c.container, c.containerLimits)},
				Resources:  &corev1.ResourceRequirements{Requests: list(c.requests), Limits: list(c.limits)},
			}
			assert.Equal(t, c.want, text(sizing.Request(spec, "team", snapshot())))
		})
	}
}

func TestRequestOfOverhead(t *testing.T) {
	facts := snapshot(
		&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "kata"}, Overhead: &nodev1.Overhead{PodFixed: list("cpu=250m memory=120Mi")}},
		&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "runc"}},
	)
	for name, c := range map[string]struct{ class, overhead, want string }{
		"of the RuntimeClass":        {class: "kata", want: "cpu=1250m memory=120Mi pods=1"},
		"class without overhead":     {class: "runc", want: "cpu=1 pods=1"},
		"class that does not exist":  {class: "gvisor", want: "cpu=1 pods=1"},
		"the pod's own wins":         {class: "kata", overhead: "cpu=100m", want: "cpu=1100m pods=1"},
		"the pod's own, of no class": {overhead: "memory=1Mi", want: "cpu=1 memory=1Mi pods=1"},
		"none":                       {want: "cpu=1 pods=1"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := podOf("cpu=1")
			spec.Overhead = list(c.overhead)
			if c.class != "" {
				spec.RuntimeClassName = &c.class
			}
			assert.Equal(t, c.want, text(sizing.Request(spec, "team", facts)))
		})
	}
	spec := podOf("cpu=1")
	spec.Overhead, spec.RuntimeClassName = corev1.ResourceList{}, new("kata")
	assert.Equal(t, "cpu=1250m memory=120Mi pods=1", text(sizing.Request(spec, "team", facts)), "an empty overhead is none")
}

func TestRequestOfLimitRanges(t *testing.T) {
	for name, c := range map[string]struct {
		item             corev1.LimitRangeItem
		requests, limits string
		want             string
	}{
		"default request":              {item: corev1.LimitRangeItem{DefaultRequest: list("cpu=500m")}, want: "cpu=500m pods=1"},
		"default limit is the request": {item: corev1.LimitRangeItem{Default: list("cpu=2")}, want: "cpu=2 pods=1"},
		"default request before limit": {item: corev1.LimitRangeItem{Default: list("cpu=2"), DefaultRequest: list("cpu=1")}, want: "cpu=1 pods=1"},
		"only a maximum":               {item: corev1.LimitRangeItem{Max: list("memory=4Gi")}, want: "memory=4Gi pods=1"},
		"only a minimum":               {item: corev1.LimitRangeItem{Min: list("memory=1Gi")}, want: "memory=1Gi pods=1"},
		"maximum before minimum":       {item: corev1.LimitRangeItem{Min: list("cpu=1"), Max: list("cpu=4")}, want: "cpu=4 pods=1"},
		"own request":                  {item: corev1.LimitRangeItem{DefaultRequest: list("cpu=500m")}, requests: "cpu=1", want: "cpu=1 pods=1"},
		"own limit":                    {item: corev1.LimitRangeItem{DefaultRequest: list("cpu=500m")}, limits: "cpu=3", want: "cpu=3 pods=1"},
		"own request of zero":          {item: corev1.LimitRangeItem{DefaultRequest: list("cpu=500m")}, requests: "cpu=0", want: "cpu=0 pods=1"},
	} {
		t.Run(name, func(t *testing.T) {
			facts := snapshot(limitRange("team/limits", c.item), limitRange("other/limits", corev1.LimitRangeItem{Default: list("cpu=7 memory=7Gi")}))
			spec := &corev1.PodSpec{Containers: []corev1.Container{container(c.requests, c.limits)}}
			assert.Equal(t, c.want, text(sizing.Request(spec, "team", facts)))
		})
	}
}

func TestLimitRangesCountForEveryContainerAndNoPod(t *testing.T) {
	limits := limitRange("team/limits", corev1.LimitRangeItem{DefaultRequest: list("cpu=500m")})
	limits.Spec.Limits = append(limits.Spec.Limits, corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: list("memory=9Gi")})
	spec := &corev1.PodSpec{
		InitContainers: []corev1.Container{sidecar(""), container("", "")},
		Containers:     []corev1.Container{container("", ""), container("cpu=1", "")},
	}
	assert.Equal(t, "cpu=2 pods=1", text(sizing.Request(spec, "team", snapshot(limits))))
	assert.Equal(t, "cpu=1 pods=1", text(sizing.Request(spec, "tea", snapshot(limits))))
	assert.Equal(t, "cpu=1 pods=1", text(sizing.Request(spec, "team", &cluster.Snapshot{})), "nothing known")

	both := snapshot(limits, limitRange("team/more", corev1.LimitRangeItem{DefaultRequest: list("cpu=700m memory=1Gi")}))
	assert.Equal(t, "cpu=2400m memory=3Gi pods=1", text(sizing.Request(spec, "team", both)), "of two LimitRanges the larger default counts")
}

func TestLimitRangeComesBeforePodLevelDefaults(t *testing.T) {
	spec := podOf("")
	spec.Resources = &corev1.ResourceRequirements{Limits: list("cpu=4")}
	facts := snapshot(limitRange("team/limits", corev1.LimitRangeItem{DefaultRequest: list("cpu=500m")}))
	assert.Equal(t, "cpu=500m pods=1", text(sizing.Request(spec, "team", facts)))
	assert.Equal(t, "cpu=4 pods=1", text(sizing.Request(spec, "team", snapshot())))
}
