package sizing

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"warmpool.sh/webhook/cluster"
)

// Daemon is a DaemonSet as far as it takes room on nodes.
type Daemon struct {
	// Name is NAMESPACE/NAME.
	Name string
	// Request is what each of its pods asks for.
	Request corev1.ResourceList

	affinity    nodeaffinity.RequiredNodeAffinity
	tolerations []corev1.Toleration
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
		all = append(all, &Daemon{
			Name: name, Request: Request(spec, ds.Namespace, facts),
			affinity:    nodeaffinity.NewRequiredNodeAffinity(spec.NodeSelector, spec.Affinity),
			tolerations: append(slices.Clone(spec.Tolerations), controllerTolerations(ds)...),
		})
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

// runsOn tells whether the node has a pod of the DaemonSet. With a node selection that cannot be read (problem) it
// counts: better a node that looks smaller than a sum that is silently short.
func (d *Daemon) runsOn(node *corev1.Node) (runs bool, problem string) {
	_, untolerated := corev1helpers.FindMatchingUntoleratedTaint(logr.Discard(), node.Spec.Taints, d.tolerations, keepsPodsAway, false)
	if untolerated {
		return false, ""
	}
	match, err := d.affinity.Match(node)
	if err != nil {
		return true, fmt.Sprintf("DaemonSet %s has a node affinity that cannot be read, and is counted on every node: %v", d.Name, err)
	}
	return match, ""
}

// keepsPodsAway leaves out taints that come and go with a node's state: a DaemonSet's pods are there before and after.
func keepsPodsAway(taint *corev1.Taint) bool {
	return (taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute) && !isTransient(taint.Key)
}

func isTransient(key string) bool {
	return strings.HasPrefix(key, "node.kubernetes.io/") || strings.HasPrefix(key, "karpenter.sh/") ||
		key == "ToBeDeletedByClusterAutoscaler" || key == "DeletionCandidateOfClusterAutoscaler"
}

// classifier tells which DaemonSets run on a node, once for all nodes that differ in nothing that a DaemonSet asks about.
type classifier struct {
	daemons []*Daemon
	keys    []string // of the labels that DaemonSets ask about
	byName  bool     // some DaemonSet asks for nodes by name
	classes map[string]*class
}

// class is a set of DaemonSets that run together.
type class struct {
	key      string
	daemons  []*Daemon
	overhead corev1.ResourceList
	problems []string
}

func newClassifier(facts *cluster.Snapshot) *classifier {
	c := &classifier{daemons: daemons(facts), classes: map[string]*class{}}
	keys := map[string]bool{}
	for _, ds := range facts.DaemonSets.All() {
		spec := &ds.Spec.Template.Spec
		for key := range spec.NodeSelector {
			keys[key] = true
		}
		if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
			continue
		}
		for _, term := range spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			c.byName = c.byName || len(term.MatchFields) > 0
			for _, r := range term.MatchExpressions {
				keys[r.Key] = true
			}
		}
	}
	c.keys = slices.Sorted(maps.Keys(keys))
	return c
}

func (c *classifier) classOf(node *corev1.Node) *class {
	key := c.key(node)
	if known := c.classes[key]; known != nil {
		return known
	}
	found := &class{overhead: corev1.ResourceList{}}
	var names []string
	for _, d := range c.daemons {
		runs, problem := d.runsOn(node)
		if problem != "" {
			found.problems = append(found.problems, problem)
		}
		if !runs {
			continue
		}
		found.daemons = append(found.daemons, d)
		names = append(names, d.Name)
		for name, quantity := range d.Request {
			sum := found.overhead[name]
			sum.Add(quantity)
			found.overhead[name] = sum
		}
	}
	found.key = strings.Join(names, " ")
	c.classes[key] = found
	return found
}

// key writes down all of a node that DaemonSets ask about.
func (c *classifier) key(node *corev1.Node) string {
	var b strings.Builder
	if c.byName {
		b.WriteString(node.Name)
	}
	for _, key := range c.keys {
		value, ok := node.Labels[key]
		fmt.Fprintf(&b, "\x00%t%s", ok, value)
	}
	taints := slices.Clone(node.Spec.Taints)
	slices.SortFunc(taints, func(a, b corev1.Taint) int { return cmp.Compare(a.ToString(), b.ToString()) })
	for i := range taints {
		b.WriteString("\x00" + taints[i].ToString())
	}
	return b.String()
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
