package podadmission_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var values = map[corev1.ResourceName][]string{
	corev1.ResourceCPU:              {"0", "100m", "0.25", "500m", "1", "2"},
	corev1.ResourceMemory:           {"64Mi", "128Mi", "0.5Gi", "1Gi"},
	corev1.ResourceEphemeralStorage: {"1Gi", "2Gi"},
	"example.com/fpga":              {"1", "2"},
}

var names = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, "example.com/fpga"}

func quantity(random *rand.Rand, name corev1.ResourceName) resource.Quantity {
	return resource.MustParse(values[name][random.IntN(len(values[name]))])
}

// some are quantities of some resources, of each one time in so many.
func some(random *rand.Rand, in int) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, name := range names {
		if random.IntN(in) == 0 {
			list[name] = quantity(random, name)
		}
	}
	return list
}

// furnish makes a namespace with up to one LimitRange of each type and up to two quotas. Those that are not valid are
// left out.
func furnish(t *testing.T, api client.Client, random *rand.Rand, namespace string) {
	t.Helper()
	require.NoError(t, api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	ranges := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "limits", Namespace: namespace}}
	for _, item := range []corev1.LimitRangeItem{
		{Type: corev1.LimitTypeContainer, Min: some(random, 6), Max: some(random, 6), Default: some(random, 5), DefaultRequest: some(random, 6), MaxLimitRequestRatio: ratio(random)},
		{Type: corev1.LimitTypePod, Min: some(random, 8), Max: some(random, 8), MaxLimitRequestRatio: ratio(random)},
	} {
		if random.IntN(2) == 0 {
			ranges.Spec.Limits = append(ranges.Spec.Limits, item)
		}
	}
	if len(ranges.Spec.Limits) > 0 {
		_ = api.Create(t.Context(), ranges)
	}
	for _, name := range []string{"first", "second"}[:random.IntN(3)] {
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: quotaSpec(random)}
		if api.Create(t.Context(), quota) != nil {
			continue
		}
		quota.Status.Hard, quota.Status.Used = quota.Spec.Hard, corev1.ResourceList{}
		for name := range quota.Spec.Hard {
			quota.Status.Used[name] = resource.MustParse([]string{"0", "1"}[random.IntN(2)])
		}
		require.NoError(t, api.Status().Update(t.Context(), quota))
	}
}

func ratio(random *rand.Rand) corev1.ResourceList {
	if random.IntN(6) > 0 {
		return nil
	}
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse([]string{"1", "1.5", "4"}[random.IntN(3)])}
}

func quotaSpec(random *rand.Rand) corev1.ResourceQuotaSpec {
	hard := map[corev1.ResourceName][]string{
		corev1.ResourcePods: {"0", "1", "2"}, "count/pods": {"1", "5"}, "services": {"0"},
		corev1.ResourceCPU: {"1", "3"}, corev1.ResourceRequestsMemory: {"512Mi", "4Gi"}, corev1.ResourceLimitsCPU: {"1", "3", "9"},
		corev1.ResourceLimitsMemory: {"1Gi", "8Gi"}, corev1.ResourceRequestsEphemeralStorage: {"1Gi", "9Gi"}, "requests.example.com/fpga": {"1", "3"},
	}
	spec := corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{}}
	for _, name := range []corev1.ResourceName{
		"pods", "count/pods", "services", "cpu", "requests.memory", "limits.cpu", "limits.memory", "requests.ephemeral-storage", "requests.example.com/fpga",
	} {
		if random.IntN(6) == 0 {
			spec.Hard[name] = resource.MustParse(hard[name][random.IntN(len(hard[name]))])
		}
	}
	class := corev1.ScopedResourceSelectorRequirement{ScopeName: corev1.ResourceQuotaScopePriorityClass, Values: []string{"low"}}
	switch random.IntN(7) {
	case 0:
		class.Operator = corev1.ScopeSelectorOpIn
	case 1:
		class.Operator = corev1.ScopeSelectorOpNotIn
	case 2:
		class.Operator, class.Values = corev1.ScopeSelectorOpExists, nil
	case 3:
		spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotBestEffort}
		return spec
	case 4:
		spec.Scopes, spec.Hard = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}, corev1.ResourceList{"pods": resource.MustParse("0")}
		return spec
	default:
		return spec
	}
	spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{class}}
	return spec
}

func deployment(random *rand.Rand, namespace string) *appsv1.Deployment {
	spec := corev1.PodSpec{AutomountServiceAccountToken: new(false), Containers: []corev1.Container{container(random, "pause")}}
	if random.IntN(3) == 0 {
		spec.Containers = append(spec.Containers, container(random, "other"))
	}
	if random.IntN(2) == 0 {
		c := container(random, "pull-workspace-image")
		if random.IntN(4) == 0 {
			c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}
		spec.InitContainers = []corev1.Container{c}
	}
	if random.IntN(8) == 0 {
		resources := resources(random)
		for _, name := range []corev1.ResourceName{corev1.ResourceEphemeralStorage, "example.com/fpga"} {
			delete(resources.Requests, name)
			delete(resources.Limits, name)
		}
		spec.Resources = &resources
	}
	if random.IntN(2) == 0 {
		spec.PriorityClassName = "low"
		switch random.IntN(12) {
		case 0:
			spec.Priority = new(int32(-1))
		case 1:
			spec.Priority = new(int32(-1000))
		case 2:
			spec.PreemptionPolicy = new(corev1.PreemptLowerPriority)
		case 3:
			spec.PreemptionPolicy = new(corev1.PreemptNever)
		}
	}
	switch random.IntN(20) {
	case 0:
		spec.RuntimeClassName = new("kata")
	case 1:
		spec.RuntimeClassName = new("absent")
	case 2:
		spec.RuntimeClassName, spec.NodeSelector = new("kata"), map[string]string{"kata": "false"}
	case 3:
		spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	}
	labels := map[string]string{"app": "ph"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "ph", Namespace: namespace, Labels: map[string]string{"warmpool.sh/pool": "cpu"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}
}

func container(random *rand.Rand, name string) corev1.Container {
	return corev1.Container{Name: name, Image: "pause", Resources: resources(random)}
}

// resources are requests and limits, most of which agree.
func resources(random *rand.Rand) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{Requests: some(random, 2), Limits: some(random, 3)}
	for name, request := range r.Requests {
		limit, ok := r.Limits[name]
		if name == "example.com/fpga" || ok && request.Cmp(limit) > 0 {
			r.Limits[name] = request
		}
	}
	return r
}
