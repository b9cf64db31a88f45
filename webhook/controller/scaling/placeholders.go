package scaling

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/prepull"
)

// placeholders are those of one pool, as the Snapshot has them.
type placeholders struct {
	// deployments in the order of their names.
	deployments []*appsv1.Deployment
	// replicas is how many pods they are to have together; bound, warm and failed how many have a node, are warm, fail to pull.
	replicas, bound, warm, failed int
	// pending is how many have no node, waited how long the first of them has none, ages how long those have been on their way that
	// have a new node and pull.
	pending int
	waited  time.Duration
	ages    []time.Duration
	pods    []*corev1.Pod
}

// findPlaceholders gives those of each pool, by its name: those in the placeholders' namespace, whose pods are watched.
func findPlaceholders(e *policy.Evaluator, now time.Time, clock func(time.Time) time.Time) map[string]*placeholders {
	found := map[string]*placeholders{}
	poolOf := map[string]string{}
	for _, pool := range e.Pools().All() {
		found[pool.Config.Name] = &placeholders{}
	}
	for _, d := range e.Facts().Deployments.All() {
		if d.Namespace != e.Config().Placeholders.Namespace || d.DeletionTimestamp != nil || !e.IsPlaceholder(d) {
			continue
		}
		name := e.Placeholder(d, d.Namespace).PoolName()
		if p := found[name]; p != nil {
			poolOf[d.Name] = name
			p.deployments = append(p.deployments, d)
			p.replicas += int(policy.ReplicasOf(d))
		}
	}
	for _, pod := range e.Facts().PlaceholderPods.All() {
		if p := found[poolOf[policy.DeploymentOf(pod)]]; p != nil && !policy.Ended(pod) {
			p.add(pod, e.Facts().Nodes.Get(pod.Spec.NodeName), now, clock)
		}
	}
	return found
}

func (p *placeholders) add(pod *corev1.Pod, node *corev1.Node, now time.Time, clock func(time.Time) time.Time) {
	_, isWarm := prepull.OnNode(pod)
	age := now.Sub(clock(pod.CreationTimestamp.Time))
	p.pods = append(p.pods, pod)
	switch {
	case pod.Spec.NodeName == "":
		p.pending++
		p.waited = max(p.waited, age)
		return
	case isWarm:
		p.warm++
	case pod.Labels[prepull.WarmLabel] == prepull.WarmFailed:
		p.failed++
	case cameFor(node, pod):
		p.ages = append(p.ages, age)
	}
	p.bound++
}

// cameFor tells whether a node is newer than the pod that it has: to pull an image on one that was there already takes less.
func cameFor(node *corev1.Node, pod *corev1.Pod) bool {
	return node != nil && !node.CreationTimestamp.Time.Before(pod.CreationTimestamp.Time)
}

// leads finds how long placeholders take to get warm.
type leads struct {
	// seen are the pods that were not warm at the last look; false: what they take is not to count.
	seen map[types.UID]bool
}

// observe gives the lead times of those that are warm since the last look. Those that are without a node while the pool is held wait
// for something else than a node that boots.
func (l *leads) observe(e *policy.Evaluator, p *placeholders, held bool, now time.Time, clock func(time.Time) time.Time) []time.Duration {
	before := l.seen
	l.seen = map[types.UID]bool{}
	var found []time.Duration
	for _, pod := range p.pods {
		counts, known := before[pod.UID]
		_, isWarm := prepull.OnNode(pod)
		switch {
		case !isWarm:
			excused := held && pod.Spec.NodeName == "" || pod.Labels[prepull.WarmLabel] == prepull.WarmFailed
			l.seen[pod.UID] = (counts || !known) && !excused
		case known && counts && cameFor(e.Facts().Nodes.Get(pod.Spec.NodeName), pod):
			found = append(found, warmAt(pod, now, clock).Sub(clock(pod.CreationTimestamp.Time)))
		}
	}
	slices.Sort(found)
	return found
}

// warmAt is when the last image was there by the kubelet's clock, else now.
func warmAt(pod *corev1.Pod, now time.Time, clock func(time.Time) time.Time) time.Time {
	var last time.Time
	for i := range pod.Status.InitContainerStatuses {
		if ended := pod.Status.InitContainerStatuses[i].State.Terminated; ended != nil && ended.FinishedAt.After(last) {
			last = ended.FinishedAt.Time
		}
	}
	if last.IsZero() || clock(last).After(now) {
		return now
	}
	return clock(last)
}
