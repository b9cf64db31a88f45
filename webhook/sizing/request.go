package sizing

import (
	"strings"

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
	return request(spec, limitRangeDefaults(namespace, facts, defaultRequests), facts)
}

func request(spec *corev1.PodSpec, defaults corev1.ResourceList, facts *cluster.Snapshot) corev1.ResourceList {
	request := sum(spec, defaults, facts)
	counts := make(corev1.ResourceList, len(request)+1)
	for name, quantity := range request {
		counts[name] = counted(name, quantity)
	}
	counts[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return counts
}

// sum is what all of a pod asks for together; it may be the spec's own list.
func sum(spec *corev1.PodSpec, defaults corev1.ResourceList, facts *cluster.Snapshot) corev1.ResourceList {
	overhead := overhead(spec, facts)
	if len(spec.Containers) == 1 && len(spec.InitContainers)+len(overhead) == 0 && spec.Resources == nil {
		return requestsOf(&spec.Containers[0].Resources, defaults) // as most are
	}
	return podresource.PodRequests(completedPod(spec, defaults, nil, overhead), podresource.PodResourcesOptions{})
}

// Admitted is a pod of the spec with names and resources of its containers as the API server completes them before it
// judges them: see Request; default limits too. It shares parts with the spec.
func Admitted(spec *corev1.PodSpec, namespace string, facts *cluster.Snapshot) *corev1.Pod {
	requests := limitRangeDefaults(namespace, facts, defaultRequests)
	limits := limitRangeDefaults(namespace, facts, defaultLimits)
	return completedPod(spec, requests, limits, overhead(spec, facts))
}

func completedPod(spec *corev1.PodSpec, requests, limits, overhead corev1.ResourceList) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: completed(spec.InitContainers, requests, limits),
		Containers:     completed(spec.Containers, requests, limits),
	}}
	if len(overhead) > 0 {
		pod.Spec.Overhead = merged(overhead)
	}
	pod.Spec.Resources = completedPodLevel(spec.Resources, pod)
	return pod
}

// counted gives a quantity as the scheduler counts it: in whole thousandths of a cpu, in whole units of all else.
func counted(name corev1.ResourceName, quantity resource.Quantity) resource.Quantity {
	quantity = quantity.DeepCopy()
	if name == corev1.ResourceCPU {
		quantity.RoundUp(resource.Milli)
	} else {
		quantity.RoundUp(0)
	}
	return quantity
}

// completed gives the containers with resources as their pods will have them.
func completed(containers []corev1.Container, requests, limits corev1.ResourceList) []corev1.Container {
	all := make([]corev1.Container, len(containers))
	for i := range containers {
		c := &containers[i]
		all[i] = corev1.Container{Name: c.Name, RestartPolicy: c.RestartPolicy, Resources: corev1.ResourceRequirements{
			Requests: requestsOf(&c.Resources, requests),
			Limits:   merged(c.Resources.Limits, limits),
		}}
	}
	return all
}

// requestsOf are a container's requests as its pod will have them: most are so already.
func requestsOf(r *corev1.ResourceRequirements, defaults corev1.ResourceList) corev1.ResourceList {
	complete := true
	for _, list := range [2]corev1.ResourceList{r.Limits, defaults} {
		for name := range list {
			_, ok := r.Requests[name]
			complete = complete && ok
		}
	}
	for _, quantity := range r.Requests {
		_, exact := quantity.AsScale(resource.Milli)
		complete = complete && exact
	}
	if complete {
		return r.Requests
	}
	return merged(r.Requests, r.Limits, defaults)
}

// merged gives for each resource the quantity of the first list that has one, in thousandths as the API server takes
// quantities in.
func merged(lists ...corev1.ResourceList) corev1.ResourceList {
	all := corev1.ResourceList{}
	for _, list := range lists {
		for name, quantity := range list {
			if _, ok := all[name]; !ok {
				quantity = quantity.DeepCopy()
				quantity.RoundUp(resource.Milli)
				all[name] = quantity
			}
		}
	}
	return all
}

// completedPodLevel fills pod-level requests as the API server does where only limits are set: with what the containers
// ask for together, else with the limit. Hugepages cannot be overcommitted: there the limit is the request.
func completedPodLevel(podLevel *corev1.ResourceRequirements, pod *corev1.Pod) *corev1.ResourceRequirements {
	if podLevel == nil {
		return nil
	}
	together := podresource.AggregateContainerRequests(pod, podresource.PodResourcesOptions{})
	requests := merged(podLevel.Requests)
	for name, limit := range merged(podLevel.Limits) {
		if _, ok := requests[name]; ok {
			continue
		}
		requests[name] = limit
		if quantity, ok := together[name]; ok && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			requests[name] = quantity
		}
	}
	return &corev1.ResourceRequirements{Requests: requests, Limits: merged(podLevel.Limits)}
}

func overhead(spec *corev1.PodSpec, facts *cluster.Snapshot) corev1.ResourceList {
	if len(spec.Overhead) > 0 || spec.RuntimeClassName == nil {
		return spec.Overhead
	}
	class := facts.RuntimeClasses.Get(*spec.RuntimeClassName)
	if class == nil || class.Overhead == nil {
		return nil
	}
	return class.Overhead.PodFixed
}

// limitRangeDefaults are the default requests or limits for containers in the namespace. Of several LimitRanges the API
// server takes any; here the larger default counts.
func limitRangeDefaults(namespace string, facts *cluster.Snapshot, defaultsOf func(*corev1.LimitRange) corev1.ResourceList) corev1.ResourceList {
	defaults := corev1.ResourceList{}
	for _, limits := range facts.LimitRanges.Prefix(namespace + "/") {
		for name, quantity := range defaultsOf(limits) {
			if other, ok := defaults[name]; !ok || other.Cmp(quantity) < 0 {
				defaults[name] = quantity
			}
		}
	}
	return defaults
}

// defaultRequests are a LimitRange's default requests for containers by its own rules: an absent default limit is the
// maximum, an absent default request the default limit, else the minimum.
func defaultRequests(limits *corev1.LimitRange) corev1.ResourceList {
	var lists []corev1.ResourceList
	for _, item := range limits.Spec.Limits {
		if item.Type == corev1.LimitTypeContainer {
			lists = append(lists, item.DefaultRequest, item.Default, item.Max, item.Min)
		}
	}
	return merged(lists...)
}

// defaultLimits are a LimitRange's default limits for containers: an absent one is the maximum.
func defaultLimits(limits *corev1.LimitRange) corev1.ResourceList {
	var lists []corev1.ResourceList
	for _, item := range limits.Spec.Limits {
		if item.Type == corev1.LimitTypeContainer {
			lists = append(lists, item.Default, item.Max)
		}
	}
	return merged(lists...)
}
