package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podresource "k8s.io/component-helpers/resource"

	"warmpool.sh/webhook/placement"
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

func (l *limitRange) check(limits *corev1.LimitRange) []Finding {
	var findings []Finding
	for i := range limits.Spec.Limits {
		item := &limits.Spec.Limits[i]
		switch item.Type {
		case corev1.LimitTypeContainer:
			for _, c := range l.containers() {
				findings = append(findings, l.defaultLimits(item, &c)...)
				findings = append(findings, l.defaultRequests(item, &c)...)
				findings = append(findings, l.bounds(item, &c)...)
			}
		case corev1.LimitTypePod:
			without := podresource.PodResourcesOptions{ExcludeOverhead: true}
			findings = append(findings, l.bounds(item, &limited{
				who: "the pod", path: l.specPath("containers"),
				requests: podresource.PodRequests(l.pod, without), limits: podresource.PodLimits(l.pod, without),
			})...)
		case corev1.LimitTypePersistentVolumeClaim:
		}
	}
	return findings
}

func (l *limitRange) containers() []limited {
	var all []limited
	add := func(list string, template, completed []corev1.Container) {
		for i := range completed {
			all = append(all, limited{
				who: "container " + template[i].Name, path: l.specPath(list).Index(i).Child("resources"),
				own: &template[i].Resources, requests: completed[i].Resources.Requests, limits: completed[i].Resources.Limits,
			})
		}
	}
	add("initContainers", l.Spec.InitContainers, l.pod.Spec.InitContainers)
	add("containers", l.Spec.Containers, l.pod.Spec.Containers)
	return all
}

// defaultLimits are those of the LimitRange with which no API server takes a container: below its request or, of what
// cannot be overcommitted, other than it; or above the limit of the pod as a whole.
func (l *limitRange) defaultLimits(item *corev1.LimitRangeItem, c *limited) []Finding {
	var findings []Finding
	for _, name := range sortedNames(item.Default) {
		limit, request := c.limits[name], c.requests[name]
		if _, chosen := c.own.Limits[name]; chosen || limit.Cmp(item.Default[name]) != 0 {
			continue
		}
		path := c.path.Child("limits").Key(string(name))
		gives := fmt.Sprintf("LimitRange %s gives %s the default limit %s %s", l.key, c.who, name, limit.String())
		switch excess := request.Cmp(limit); {
		case excess > 0, excess < 0 && cannotBeOvercommitted(name):
			findings = append(findings, invalid(path, limit.String(), fmt.Sprintf("%s, and it requests %s: the API server refuses every pod", gives, request.String())).
				withFix(fmt.Sprintf("Set the limit %s of %s to %s, or change the default of the LimitRange.", name, c.who, request.String())))
		case l.Spec.Resources == nil:
		default:
			if whole, ok := l.Spec.Resources.Limits[name]; ok && limit.Cmp(whole) > 0 {
				findings = append(findings, invalid(path, limit.String(), fmt.Sprintf("%s, above the limit %s of the pod as a whole: the API server refuses every pod", gives, whole.String())).
					withFix(fmt.Sprintf("Set the limit %s of %s to at most %s, or change the default of the LimitRange.", name, c.who, whole.String())))
			}
		}
	}
	return l.keyed("default", c, findings)
}

// defaultRequests are those of resources that need a limit, and have none.
func (l *limitRange) defaultRequests(item *corev1.LimitRangeItem, c *limited) []Finding {
	var findings []Finding
	for _, name := range sortedNames(item.DefaultRequest) {
		if request := c.requests[name]; cannotBeOvercommitted(name) && !has(c.own.Requests, name) && !has(c.limits, name) {
			findings = append(findings, required(c.path.Child("limits").Key(string(name)), fmt.Sprintf("LimitRange %s gives %s the default request %s %s, which needs an equal limit: the API server refuses every pod", l.key, c.who, name, request.String())).
				withFix(fmt.Sprintf("Set the limit %s of %s to %s, or give the LimitRange the same default.", name, c.who, request.String())))
		}
	}
	return l.keyed("default", c, findings)
}

// bounds are the minimum, maximum and ratio of the LimitRange that are not kept.
func (l *limitRange) bounds(item *corev1.LimitRangeItem, c *limited) []Finding {
	var findings []Finding
	const requests, limits = "requests", "limits"
	breach := func(list string, name corev1.ResourceName, wants string) {
		findings = append(findings, l.breach(c, list, name, fmt.Sprintf("%s of type %s", wants, item.Type)))
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
	return l.keyed("bounds", c, findings)
}

// breach is the finding about a request or limit that a LimitRange wants otherwise.
func (l *limitRange) breach(c *limited, list string, name corev1.ResourceName, wants string) Finding {
	path, values := c.path, c.limits
	if c.own != nil {
		path = path.Child(list).Key(string(name))
	}
	if list == "requests" {
		values = c.requests
	}
	what := fmt.Sprintf("%s %s", strings.TrimSuffix(list, "s"), name)
	value := values[name]
	f := invalid(path, value.String(), fmt.Sprintf("%s has the %s %s; LimitRange %s wants %s: the API server refuses every pod", c.who, what, value.String(), l.key, wants))
	if !has(values, name) {
		f = required(path, fmt.Sprintf("%s has no %s; LimitRange %s wants %s: the API server refuses every pod", c.who, what, l.key, wants))
	}
	return f.withFix(fmt.Sprintf("Change the %s of %s to what LimitRange %s wants, or change the LimitRange.", what, c.who, l.key))
}

// keyed tells the findings of one LimitRange and container from others.
func (l *limitRange) keyed(kind string, c *limited, findings []Finding) []Finding {
	for i := range findings {
		findings[i].key = fmt.Sprintf("LimitRange %s, %s of %s: %s", l.key, kind, c.who, findings[i].Error.Field)
	}
	return findings
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

// cannotBeOvercommitted tells the resources whose limit is the request.
func cannotBeOvercommitted(name corev1.ResourceName) bool {
	return placement.IsExtendedResource(name) || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func has(list corev1.ResourceList, name corev1.ResourceName) bool {
	_, ok := list[name]
	return ok
}

func sortedNames(list corev1.ResourceList) []corev1.ResourceName {
	return slices.Sorted(maps.Keys(list))
}
