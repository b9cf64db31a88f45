package sizing

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
)

// classifier tells which DaemonSets run on a node, once for all nodes that differ in nothing that a DaemonSet asks about.
type classifier struct {
	daemons    []*Daemon
	namespaces map[string]bool // of the DaemonSets
	keys       []string        // of the labels that DaemonSets ask about
	byName     bool            // some DaemonSet asks for nodes by name
	// startup are the taints that nodes of a NodePool lose once they are set up.
	startup  map[string][]corev1.Taint
	known    map[string]*class // by what describe says
	problems []string          // with the facts as a whole
}

// class is a set of DaemonSets that run together.
type class struct {
	key      string
	daemons  []*Daemon
	overhead corev1.ResourceList
}

func newClassifier(facts *cluster.Snapshot) *classifier {
	c := &classifier{
		daemons: daemons(facts), namespaces: map[string]bool{}, startup: startupTaints(facts),
		known: map[string]*class{}, problems: unread(facts),
	}
	if static := staticPods(facts); len(static) > 0 {
		c.daemons, c.byName = append(c.daemons, static...), true
	}
	keys := map[string]bool{}
	for _, ds := range facts.DaemonSets.All() {
		c.namespaces[ds.Namespace] = true
		spec := &ds.Spec.Template.Spec
		c.byName = c.byName || spec.NodeName != ""
		for key := range spec.NodeSelector {
			keys[key] = true
		}
		required := cluster.RequiredNodes(spec)
		if required == nil {
			continue
		}
		for _, term := range required.NodeSelectorTerms {
			c.byName = c.byName || len(term.MatchFields) > 0
			for _, r := range term.MatchExpressions {
				keys[r.Key] = true
			}
		}
	}
	c.keys = slices.Sorted(maps.Keys(keys))
	return c
}

// unread are the objects that should count and cannot.
func unread(facts *cluster.Snapshot) []string {
	var problems []string
	for _, kind := range []struct {
		name, lost string
		known      bool
		reason     string
		malformed  []string
		why        func(key string) string
	}{
		{"DaemonSet", "what they take is not counted", facts.DaemonSets.Known(), facts.DaemonSets.Reason(), facts.DaemonSets.AllMalformed(), facts.DaemonSets.Malformed},
		{"LimitRange", "their defaults are not counted", facts.LimitRanges.Known(), facts.LimitRanges.Reason(), facts.LimitRanges.AllMalformed(), facts.LimitRanges.Malformed},
	} {
		if !kind.known {
			problems = append(problems, fmt.Sprintf("%ss are not known (%s): %s", kind.name, kind.reason, kind.lost))
		}
		for _, key := range kind.malformed {
			problems = append(problems, fmt.Sprintf("%s %s is not counted: %s", kind.name, key, kind.why(key)))
		}
	}
	return problems
}

func startupTaints(facts *cluster.Snapshot) map[string][]corev1.Taint {
	all := map[string][]corev1.Taint{}
	for name, np := range facts.NodePools.All() {
		if len(np.StartupTaints) > 0 {
			all[name] = np.StartupTaints
		}
	}
	return all
}

// outdated tells whether DaemonSets or what their pods ask for may have changed.
func (c *classifier) outdated(now, before *cluster.Snapshot) bool {
	return changed(now.DaemonSets, before.DaemonSets, nil) || changed(now.RuntimeClasses, before.RuntimeClasses, nil) ||
		changed(now.LimitRanges, before.LimitRanges, func(key string) bool {
			namespace, _, _ := strings.Cut(key, "/")
			return c.namespaces[namespace] || now.LimitRanges.Malformed(key) != before.LimitRanges.Malformed(key)
		}) ||
		changed(now.Pods, before.Pods, nil) ||
		changed(now.NodePools, before.NodePools, nil) && !equality.Semantic.DeepEqual(startupTaints(now), c.startup)
}

// changed tells whether facts changed whose keys matter; nil: all do.
func changed[T any](now, before cluster.Facts[T], matters func(key string) bool) bool {
	keys, ok := now.ChangedSince(before)
	if !ok || matters == nil {
		return !ok || len(keys) > 0
	}
	return slices.ContainsFunc(keys, matters)
}

// of gives the class of a node.
func (c *classifier) of(node *corev1.Node) *class {
	description := c.describe(node)
	known := c.known[description]
	if known == nil {
		known = c.classOf(node)
		c.known[description] = known
	}
	return known
}

// forget keeps DaemonSets that ask for nodes by name from making the memory grow: those of nodes that are gone are
// forgotten once there are more classes than the number, and a few.
func (c *classifier) forget(classes int) {
	if len(c.known) > classes+100 {
		clear(c.known)
	}
}

func (c *classifier) classOf(node *corev1.Node) *class {
	found, taints := &class{}, c.lasting(node)
	node = settled(node)
	var names []string
	for _, d := range c.daemons {
		if !d.runsOn(node, taints) {
			continue
		}
		found.daemons = append(found.daemons, d)
		names = append(names, d.Name+d.variant)
	}
	found.overhead = sumOf(found.daemons)
	found.key = strings.Join(names, " ")
	return found
}

// settled is a node of Karpenter's as it will be: with the labels that Karpenter adds when the node has joined and when
// it is ready, and that its NodeClaim does not have.
func settled(node *corev1.Node) *corev1.Node {
	_, karpenters := node.Labels[config.NodePoolLabel]
	if !karpenters || node.Labels[registeredLabel] != "" && node.Labels[initializedLabel] != "" {
		return node
	}
	joined := *node
	joined.Labels = maps.Clone(node.Labels)
	joined.Labels[registeredLabel], joined.Labels[initializedLabel] = "true", "true"
	return &joined
}

const (
	registeredLabel  = "karpenter.sh/registered"
	initializedLabel = "karpenter.sh/initialized"
)

// describe writes down all of a node that DaemonSets ask about.
func (c *classifier) describe(node *corev1.Node) string {
	var b strings.Builder
	if c.byName {
		b.WriteString(node.Name)
	}
	for _, key := range c.keys {
		value, ok := node.Labels[key]
		fmt.Fprintf(&b, "\x00%t%s", ok, value)
	}
	taints := c.lasting(node)
	slices.SortFunc(taints, func(a, b corev1.Taint) int { return cmp.Compare(a.ToString(), b.ToString()) })
	for i := range taints {
		b.WriteString("\x00" + taints[i].ToString())
	}
	return b.String()
}

// lasting are the taints by which a node keeps pods away for good. Those that come and go with its state do not count:
// a DaemonSet's pods are there before or after.
func (c *classifier) lasting(node *corev1.Node) []corev1.Taint {
	startup := c.startup[node.Labels[config.NodePoolLabel]]
	return slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(taint corev1.Taint) bool {
		return taint.Effect == corev1.TaintEffectPreferNoSchedule || cluster.IsLifecycleTaint(taint.Key) ||
			slices.ContainsFunc(startup, func(s corev1.Taint) bool { return s.MatchTaint(&taint) })
	})
}
