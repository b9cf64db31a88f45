package policy

import (
	"cmp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresource "k8s.io/component-helpers/resource"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/sizing"
)

// podQuota holds the pods of a placeholder, as the API server completes them, to one ResourceQuota.
type podQuota struct {
	*Object
	pod   *corev1.Pod
	quota *corev1.ResourceQuota
	key   string
}

func (q *podQuota) check() {
	if !q.counts(q.Spec, q.pod) {
		return
	}
	q.unset()
	replicas := max(ReplicasOf(q.Deployment), 0)
	usage := usageOf(q.pod)
	var shortest *quotaRoom
	for _, name := range sortedNames(q.quota.Spec.Hard) {
		each, hard := usage.of(name), q.quota.Spec.Hard[name]
		switch {
		case !cluster.LimitsPods(name) || each.Sign() <= 0: // such a quota may even be exceeded
		case each.Cmp(hard) > 0:
			all := times(each, max(replicas, 1))
			q.invalid(q.specPath("containers"), each.String(), "one pod takes %s %s, and ResourceQuota %s allows %s in all: the API server refuses every pod",
				name, each.String(), q.key, hard.String()).withKey("ResourceQuota "+q.key+" "+string(name)).
				withFix("Raise %s of the ResourceQuota to at least %s, which %d pods take, or make the pods smaller.", name, all.String(), max(replicas, 1))
		default:
			if r := q.room(name, each, hard); shortest == nil || r.pods < shortest.pods {
				shortest = r
			}
		}
	}
	if shortest != nil && shortest.pods < int64(replicas) {
		q.short(shortest, replicas)
	}
}

// unset are the resources that a pod must ask for, in each container, because the quota counts them.
func (q *podQuota) unset() {
	if podresource.IsPodLevelResourcesSet(q.pod) {
		return
	}
	for _, name := range sortedNames(q.quota.Spec.Hard) {
		list, kind, found := strings.Cut(string(name), ".")
		if !found {
			list, kind = "requests", string(name)
		}
		if kind != string(corev1.ResourceCPU) && kind != string(corev1.ResourceMemory) {
			continue // of no other resource
		}
		for _, c := range limitedContainers(q.Object, q.pod) {
			values := c.requests
			if list == "limits" {
				values = c.limits
			}
			if has(values, corev1.ResourceName(kind)) {
				continue
			}
			what := strings.TrimSuffix(list, "s") + " " + kind
			q.required(c.path.Child(list).Key(kind), "ResourceQuota %s counts %s, and %s has no %s: the API server refuses every pod", q.key, name, c.who, what).
				withKey("ResourceQuota "+q.key+" "+string(name)+" "+c.who).
				withFix("Set the %s of %s, or a default in a LimitRange of the namespace.", what, c.who)
		}
	}
}

// quotaRoom is for how many pods of the placeholder a quota has room, and why.
type quotaRoom struct {
	name               corev1.ResourceName
	each, hard, others resource.Quantity
	pods               int64
	// by says what others are.
	by string
}

// room counts the pods of the placeholder that there are as its own, whose place new ones take.
func (q *podQuota) room(name corev1.ResourceName, each, hard resource.Quantity) *quotaRoom {
	r := &quotaRoom{name: name, each: each, hard: hard, by: "used by others"}
	if used, ok := q.quota.Status.Used[name]; ok {
		now := cmp.Or(q.before, q.Deployment)
		r.others = used.DeepCopy()
		r.others.Sub(q.takenBy(now, name, now.Status.Replicas))
		if r.others.Sign() < 0 {
			r.others = resource.Quantity{}
		}
	} else {
		r.others, r.by = q.askedByOthers(name), "for the other Deployments of the namespace (what is used is not known)"
	}
	free := hard.DeepCopy()
	free.Sub(r.others)
	r.pods = quotient(free, each)
	return r
}

// askedByOthers is what the other Deployments of the namespace ask for, where nothing says what is used.
func (q *podQuota) askedByOthers(name corev1.ResourceName) resource.Quantity {
	var sum resource.Quantity
	for _, d := range q.e.facts.Deployments.Prefix(q.Namespace + "/") {
		if d.Name != q.Name {
			sum.Add(q.takenBy(d, name, ReplicasOf(d)))
		}
	}
	return sum
}

// takenBy is what so many pods of a Deployment of the namespace take.
func (q *podQuota) takenBy(d *appsv1.Deployment, name corev1.ResourceName, pods int32) resource.Quantity {
	spec := &d.Spec.Template.Spec
	pod := sizing.Admitted(spec, q.Namespace, q.e.facts)
	if !q.counts(spec, pod) {
		return resource.Quantity{}
	}
	return times(usageOf(pod).of(name), pods)
}

// short reports a quota that has not room for all replicas; others may give way.
func (q *podQuota) short(r *quotaRoom, replicas int32) {
	needed := times(r.each, replicas)
	needed.Add(r.others)
	f := q.invalid(replicasPath, replicas, "ResourceQuota %s has room for %d of %d pods: of %s it allows %s, %s is %s, and one pod takes %s",
		q.key, r.pods, replicas, r.name, r.hard.String(), r.others.String(), r.by, r.each.String()).
		withFix("Raise %s of the ResourceQuota to at least %s, set fewer replicas, or make the pods smaller.", r.name, needed.String()).
		withKey("room in ResourceQuota " + q.key).atMostWarn()
	if r.pods > 0 {
		f.milder(SeverityWarning)
	}
}

// podUsage is what quotas count of one pod.
type podUsage struct{ requests, limits corev1.ResourceList }

func usageOf(pod *corev1.Pod) podUsage {
	all := podresource.PodResourcesOptions{}
	return podUsage{podresource.PodRequests(pod, all), podresource.PodLimits(pod, all)}
}

// of is what one pod takes of a quota's resource.
func (u podUsage) of(name corev1.ResourceName) resource.Quantity {
	if name == corev1.ResourcePods || name == cluster.PodCount {
		return *resource.NewQuantity(1, resource.DecimalSI)
	}
	list, of, _ := strings.Cut(string(name), ".")
	switch list {
	case "limits":
		return u.limits[corev1.ResourceName(of)]
	case "requests":
		return u.requests[corev1.ResourceName(of)]
	default:
		return u.requests[name]
	}
}

// times is a quantity for so many pods; none for a negative number.
func times(each resource.Quantity, pods int32) resource.Quantity {
	product := each.DeepCopy()
	product.Mul(int64(max(pods, 0)))
	return product
}

// quotient is how many times a quantity above 0 fits.
func quotient(free, each resource.Quantity) int64 {
	if free.Sign() <= 0 {
		return 0
	}
	if free.Value() > resource.MaxMilliValue || each.Value() > resource.MaxMilliValue {
		return free.Value() / each.Value()
	}
	return free.MilliValue() / each.MilliValue()
}
