package sizing

import (
	"fmt"
	"maps"
	"slices"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"warmpool.sh/webhook/cluster"
)

// Daemon is a DaemonSet, or a static pod, as far as it takes room on nodes.
type Daemon struct {
	// Name is NAMESPACE/NAME; a static pod's says that it is one.
	Name string
	// Request is what each of its pods asks for.
	Request corev1.ResourceList

	nodeName    string
	affinity    nodeaffinity.RequiredNodeAffinity
	tolerations []corev1.Toleration
	problems    []string

	// nodes are those of a static pod; nil for a DaemonSet. variant tells static pods of one name apart.
	nodes   map[string]bool
	variant string
}

// daemons are the DaemonSets by name. What they ask for comes from their templates: their pods are bound to one node
// each and say nothing about others.
func daemons(facts *cluster.Snapshot) []*Daemon {
	var all []*Daemon
	for name, ds := range facts.DaemonSets.All() {
		if ds.DeletionTimestamp != nil {
			continue
		}
		spec := &ds.Spec.Template.Spec
		d := &Daemon{
			Name: name, nodeName: spec.NodeName,
			affinity:    nodeaffinity.NewRequiredNodeAffinity(spec.NodeSelector, spec.Affinity),
			tolerations: append(slices.Clone(spec.Tolerations), controllerTolerations(ds)...),
		}
		defaults := limitRangeDefaults(ds.Namespace, facts, defaultRequests)
		d.Request = request(spec, defaults, facts)
		d.judge(ds, defaults, facts)
		all = append(all, d)
	}
	return all
}

// controllerTolerations are those that the DaemonSet controller gives to every pod.
func controllerTolerations(ds *appsv1.DaemonSet) []corev1.Toleration {
	exists := func(key string, effect corev1.TaintEffect) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
	}
	tolerations := []corev1.Toleration{
		exists(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute),
		exists(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute),
		exists(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule),
		exists(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule),
		exists(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule),
		exists(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule),
	}
	if ds.Spec.Template.Spec.HostNetwork {
		tolerations = append(tolerations, exists(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule))
	}
	return tolerations
}

// judge notes what of the DaemonSet cannot be counted as it is, and leaves requests out that would add room.
func (d *Daemon) judge(ds *appsv1.DaemonSet, defaults corev1.ResourceList, facts *cluster.Snapshot) {
	note := func(format string, args ...any) {
		d.problems = append(d.problems, "DaemonSet "+d.Name+" "+fmt.Sprintf(format, args...))
	}
	spec := &ds.Spec.Template.Spec
	if required := cluster.RequiredNodes(spec); required != nil {
		if _, err := nodeaffinity.NewNodeSelector(required); err != nil {
			note("has a node affinity that cannot be read, and is counted wherever its other terms do not decide: %v", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Request)) {
		if quantity := d.Request[name]; quantity.Sign() < 0 {
			note("requests %s of %s, which is counted as 0", quantity.String(), name)
			delete(d.Request, name)
		}
	}
	if name := spec.RuntimeClassName; name != nil && len(spec.Overhead) == 0 && facts.RuntimeClasses.Get(*name) == nil {
		note("is of RuntimeClass %s, which is not known; its overhead is not counted", *name)
	}
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		if conflicting(ds.Namespace, name, facts) && reliesOnDefault(spec, name) {
			quantity := defaults[name]
			note("relies on LimitRanges that contradict each other in the default request of %s; the largest, %s, is counted", name, quantity.String())
		}
	}
}

func conflicting(namespace string, name corev1.ResourceName, facts *cluster.Snapshot) bool {
	var first *corev1.ResourceList
	for _, limits := range facts.LimitRanges.Prefix(namespace + "/") {
		list := defaultRequests(limits)
		quantity, ok := list[name]
		if !ok {
			continue
		}
		if first != nil && quantity.Cmp((*first)[name]) != 0 {
			return true
		}
		first = &list
	}
	return false
}

func reliesOnDefault(spec *corev1.PodSpec, name corev1.ResourceName) bool {
	return slices.ContainsFunc(slices.Concat(spec.InitContainers, spec.Containers), func(c corev1.Container) bool {
		_, requests := c.Resources.Requests[name]
		_, limits := c.Resources.Limits[name]
		return !requests && !limits
	})
}

// runsOn tells whether the node, which keeps the taints, has a pod of the DaemonSet. Where the node selection cannot be
// read it has: better a node that looks smaller than a sum that is silently short.
func (d *Daemon) runsOn(node *corev1.Node, taints []corev1.Taint) bool {
	if d.nodes != nil {
		return d.nodes[node.Name]
	}
	if d.nodeName != "" && d.nodeName != node.Name {
		return false
	}
	if _, untolerated := corev1helpers.FindMatchingUntoleratedTaint(logr.Discard(), taints, d.tolerations, nil, false); untolerated {
		return false
	}
	match, err := d.affinity.Match(node)
	return match || err != nil
}

// largest are up to n DaemonSets that ask for most of the resource, largest first.
func largest(daemons []*Daemon, name corev1.ResourceName, n int) []*Daemon {
	asking := slices.DeleteFunc(slices.Clone(daemons), func(d *Daemon) bool { q := d.Request[name]; return q.Sign() <= 0 })
	slices.SortStableFunc(asking, func(a, b *Daemon) int {
		qa, qb := a.Request[name], b.Request[name]
		return qb.Cmp(qa)
	})
	return asking[:min(n, len(asking))]
}
