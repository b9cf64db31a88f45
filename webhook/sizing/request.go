package sizing

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresource "k8s.io/component-helpers/resource"

	"warmpool.sh/webhook/cluster"
)

// Request is what the scheduler will count for a pod that is made of the spec in the namespace: the largest init step
// or the sum of containers and sidecars, pod-level resources before both, and the overhead. What the API server adds to
// pods only later is counted already: limits as requests, defaults of the namespace's LimitRanges, overhead of the
// RuntimeClass. The resource pods is 1.
func Request(spec *corev1.PodSpec, namespace string, facts *cluster.Snapshot) corev1.ResourceList {
	defaults := limitRangeDefaults(namespace, facts)
	pod := corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: completed(spec.InitContainers, defaults),
		Containers:     completed(spec.Containers, defaults),
		Overhead:       overhead(spec, facts),
	}}
	pod.Spec.Resources = completedPodLevel(spec.Resources, &pod)
	request := podresource.PodRequests(&pod, podresource.PodResourcesOptions{})
	request[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return request
}

// completed gives the containers with requests as their pods will have them.
func completed(containers []corev1.Container, defaults corev1.ResourceRequirements) []corev1.Container {
	all := make([]corev1.Container, len(containers))
	for i := range containers {
		c := &containers[i]
		all[i] = corev1.Container{Name: c.Name, RestartPolicy: c.RestartPolicy, Resources: corev1.ResourceRequirements{
			Requests: merged(c.Resources.Requests, c.Resources.Limits, defaults.Requests),
			Limits:   merged(c.Resources.Limits, defaults.Limits),
		}}
	}
	return all
}

// merged gives for each resource the quantity of the first list that has one.
func merged(lists ...corev1.ResourceList) corev1.ResourceList {
	all := corev1.ResourceList{}
	for _, list := range lists {
		for name, quantity := range list {
			if _, ok := all[name]; !ok {
				all[name] = quantity
			}
		}
	}
	return all
}

// completedPodLevel fills pod-level requests as the API server does where only limits are set: with what the containers
// ask for together, else with the limit.
func completedPodLevel(podLevel *corev1.ResourceRequirements, pod *corev1.Pod) *corev1.ResourceRequirements {
	if podLevel == nil || len(podLevel.Limits) == 0 {
		return podLevel
	}
	together := podresource.AggregateContainerRequests(pod, podresource.PodResourcesOptions{})
	requests := maps.Clone(podLevel.Requests)
	if requests == nil {
		requests = corev1.ResourceList{}
	}
	for name, limit := range podLevel.Limits {
		if _, ok := requests[name]; ok {
			continue
		}
		requests[name] = limit
		if quantity, ok := together[name]; ok {
			requests[name] = quantity
		}
	}
	return &corev1.ResourceRequirements{Requests: requests, Limits: podLevel.Limits}
}

func overhead(spec *corev1.PodSpec, facts *cluster.Snapshot) corev1.ResourceList {
	if spec.Overhead != nil || spec.RuntimeClassName == nil {
		return spec.Overhead
	}
	class := facts.RuntimeClasses.Get(*spec.RuntimeClassName)
	if class == nil || class.Overhead == nil {
		return nil
	}
	return class.Overhead.PodFixed
}

// limitRangeDefaults are the container defaults of the namespace: requests and limits by the LimitRanges' rules of
// their own (an absent default is the maximum, an absent default request the default, else the minimum).
func limitRangeDefaults(namespace string, facts *cluster.Snapshot) corev1.ResourceRequirements {
	var defaults corev1.ResourceRequirements
	for _, limits := range facts.LimitRanges.All() {
		if limits.Namespace != namespace {
			continue
		}
		for _, item := range limits.Spec.Limits {
			if item.Type != corev1.LimitTypeContainer {
				continue
			}
			limit := merged(item.Default, item.Max)
			defaults.Limits = merged(defaults.Limits, limit)
			defaults.Requests = merged(defaults.Requests, item.DefaultRequest, limit, item.Min)
		}
	}
	return defaults
}
