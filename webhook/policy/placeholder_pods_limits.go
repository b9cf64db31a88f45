package policy

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podresource "k8s.io/component-helpers/resource"
)

// limitRange holds the pods of a placeholder, as the API server completes them, to one LimitRange.
type limitRange struct {
	*Object
	pod *corev1.Pod
	key string
}

// limited is what a LimitRange judges: a container, or the pod as a whole.
type limited struct {
	who  string
	path *field.Path
	// own is what the template sets for a container; nil for a pod.
	own              *corev1.ResourceRequirements
	requests, limits corev1.ResourceList
}

func (l *limitRange) check(limits *corev1.LimitRange) {
	for i := range limits.Spec.Limits {
		item := &limits.Spec.Limits[i]
		switch item.Type {
		case corev1.LimitTypeContainer:
			for _, c := range limitedContainers(l.Object, l.pod) {
				l.keyed("default", &c, func() {
					l.defaultLimits(item, &c)
					l.defaultRequests(item, &c)
				})
				l.keyed("bounds", &c, func() { l.bounds(item, &c) })
			}
		case corev1.LimitTypePod:
			without := podresource.PodResourcesOptions{ExcludeOverhead: true}
			whole := &limited{
				who: "the pod", path: l.specPath("containers"),
				requests: podresource.PodRequests(l.pod, without), limits: podresource.PodLimits(l.pod, without),
			}
			l.keyed("bounds", whole, func() { l.bounds(item, whole) })
		case corev1.LimitTypePersistentVolumeClaim:
		}
	}
}

// limitedContainers are those of the pod as the API server completes it, with what the template sets.
func limitedContainers(o *Object, pod *corev1.Pod) []limited {
	completed := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	var all []limited
	for path, c := range o.containers() {
		resources := completed[len(all)].Resources
		all = append(all, limited{"container " + c.Name, path.Child("resources"), &c.Resources, resources.Requests, resources.Limits})
	}
	return all
}

// defaultLimits are those of the LimitRange with which no API server takes a container: below its request or, of what
// cannot be overcommitted, other than it; or above the limit of the pod as a whole.
func (l *limitRange) defaultLimits(item *corev1.LimitRangeItem, c *limited) {
	for _, name := range sortedNames(item.Default) {
		limit, request := c.limits[name], c.requests[name]
		if has(c.own.Limits, name) || limit.Cmp(item.Default[name]) != 0 {
			continue
		}
		path := c.path.Child("limits").Key(string(name))
		gives := fmt.Sprintf("LimitRange %s gives %s the default limit %s %s", l.key, c.who, name, limit.String())
		switch excess := request.Cmp(limit); {
		case excess > 0, excess < 0 && cannotBeOvercommitted(name):
			l.invalid(path, limit.String(), "%s, and it requests %s: the API server refuses every pod", gives, request.String()).
				withFix("Set the limit %s of %s to %s, or change the default of the LimitRange.", name, c.who, request.String())
		case l.Spec.Resources == nil:
		default:
			if whole, ok := l.Spec.Resources.Limits[name]; ok && limit.Cmp(whole) > 0 {
				l.invalid(path, limit.String(), "%s, above the limit %s of the pod as a whole: the API server refuses every pod", gives, whole.String()).
					withFix("Set the limit %s of %s to at most %s, or change the default of the LimitRange.", name, c.who, whole.String())
			}
		}
	}
}

// defaultRequests are those of resources that need a limit, and have none.
func (l *limitRange) defaultRequests(item *corev1.LimitRangeItem, c *limited) {
	for _, name := range sortedNames(item.DefaultRequest) {
		if request := c.requests[name]; cannotBeOvercommitted(name) && !has(c.own.Requests, name) && !has(c.limits, name) {
			l.required(c.path.Child("limits").Key(string(name)), "LimitRange %s gives %s the default request %s %s, which needs an equal limit: the API server refuses every pod", l.key, c.who, name, request.String()).
				withFix("Set the limit %s of %s to %s, or give the LimitRange the same default.", name, c.who, request.String())
		}
	}
}

// bounds are the minimum, maximum and ratio of the LimitRange that are not kept.
func (l *limitRange) bounds(item *corev1.LimitRangeItem, c *limited) {
	const requests, limits = "requests", "limits"
	breach := func(list string, name corev1.ResourceName, wants string) {
		l.breach(c, list, name, fmt.Sprintf("%s of type %s", wants, item.Type))
	}
	for _, name := range sortedNames(item.Min) {
		least, request, limit := item.Min[name], c.requests[name], c.limits[name]
		switch wants := fmt.Sprintf("at least %s, its min", least.String()); {
		case !has(c.requests, name) || request.Cmp(least) < 0:
			breach(requests, name, wants)
		case has(c.limits, name) && limit.Cmp(least) < 0:
			breach(limits, name, wants)
		}
	}
	for _, name := range sortedNames(item.Max) {
		most, request, limit := item.Max[name], c.requests[name], c.limits[name]
		switch wants := fmt.Sprintf("at most %s, its max", most.String()); {
		case !has(c.limits, name) || limit.Cmp(most) > 0:
			breach(limits, name, wants)
		case request.Cmp(most) > 0:
			breach(requests, name, wants)
		}
	}
	for _, name := range sortedNames(item.MaxLimitRequestRatio) {
		ratio, request, limit := item.MaxLimitRequestRatio[name], c.requests[name], c.limits[name]
		switch wants := fmt.Sprintf("a limit of at most %s times the request %s, its maxLimitRequestRatio", ratio.String(), request.String()); {
		case request.IsZero():
			breach(requests, name, wants)
		case limit.IsZero() || exceedsRatio(limit, request, ratio):
			breach(limits, name, wants)
		}
	}
}

// breach reports a request or limit that a LimitRange wants otherwise.
func (l *limitRange) breach(c *limited, list string, name corev1.ResourceName, wants string) {
	path, values := c.path, c.limits
	if c.own != nil {
		path = path.Child(list).Key(string(name))
	}
	if list == "requests" {
		values = c.requests
	}
	what := fmt.Sprintf("%s %s", strings.TrimSuffix(list, "s"), name)
	var f *Finding
	if value := values[name]; has(values, name) {
		f = l.invalid(path, value.String(), "%s has the %s %s; LimitRange %s wants %s: the API server refuses every pod", c.who, what, value.String(), l.key, wants)
	} else {
		f = l.required(path, "%s has no %s; LimitRange %s wants %s: the API server refuses every pod", c.who, what, l.key, wants)
	}
	f.withFix("Change the %s of %s to what LimitRange %s wants, or change the LimitRange.", what, c.who, l.key)
}

// keyed distinguishes the findings of one LimitRange and container from others.
func (l *limitRange) keyed(kind string, c *limited, check func()) {
	before := len(l.findings)
	check()
	for _, f := range l.findings[before:] {
		f.key = fmt.Sprintf("LimitRange %s, %s of %s: %s", l.key, kind, c.who, f.Error.Field)
	}
}

// exceedsRatio compares as the API server does, which rounds.
func exceedsRatio(limit, request, ratio resource.Quantity) bool {
	for _, quantity := range []resource.Quantity{limit, request, ratio} {
		if quantity.Value() > resource.MaxMilliValue {
			return float64(limit.Value())/float64(request.Value()) > float64(ratio.Value())
		}
	}
	return float64(limit.MilliValue())/float64(request.MilliValue())*1000 > float64(ratio.MilliValue())
}
