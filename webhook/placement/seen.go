package placement

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/cluster"
)

// Seen is what nodes show. Fields may be nil: nothing is seen then.
type Seen struct {
	// Taints are those of a pool's nodes, by the pool's name.
	Taints func(pool string) []corev1.Taint
	// Labels are those of a pool's nodes, by the pool's name; by the value of the label that marks them.
	Labels func(pool string) map[string]cluster.NodeLabels
	// ByHostname are the nodes with this label kubernetes.io/hostname.
	ByHostname func(hostname string) []*corev1.Node
}

// nodes find nodes.
type nodes struct {
	ByHostname func(hostname string) []*corev1.Node
	Node       func(name string) *corev1.Node
}

// typePrefix begins the labels by which Karpenter on AWS describes an instance type.
const typePrefix = "karpenter.k8s.aws/instance-"

// learn takes up what nodes of the offer, which are of the pool, show of labels that the NodePool leaves open. It concludes only
// what new nodes cannot have otherwise: the region is that of the cluster, and the instance type decides architecture and
// operating system, if all types that there can be are known. In another zone, say, there may be a node tomorrow.
func (o *offer) learn(requirement corev1.NodeSelectorRequirement, seen map[string]cluster.NodeLabels) {
	own := o.byKey[NormalKey(requirement.Key)]
	var merged *cluster.NodeLabels
	for _, value := range requirement.Values {
		if labels, ok := seen[value]; ok && own.allow(value) {
			merged = merge(merged, labels)
		}
	}
	if merged == nil {
		return
	}
	o.seen = *merged
	types, families := o.typesSeen()
	for key, label := range o.seen.ByKey {
		_, mentioned := o.byKey[key]
		settled := key == corev1.LabelTopologyRegion ||
			families && (key == corev1.LabelArchStable || key == corev1.LabelOSStable) || types && strings.HasPrefix(key, typePrefix)
		if !mentioned && settled && label.All && len(label.Values) > 0 {
			o.byKey[key] = anything().read([]corev1.NodeSelectorRequirement{in(key, label.Values...)})
		}
	}
}

// typesSeen tells whether there is a node of each instance type that the offer can have, or at least one of its family: what is
// before the size in ml.m5.4xlarge. A group of nodes without a NodePool is of one family.
func (o *offer) typesSeen() (types, families bool) {
	own, mentioned := o.byKey[corev1.LabelInstanceTypeStable]
	if !mentioned {
		return false, !o.hasNodePool
	}
	seen := o.seen.ByKey[corev1.LabelInstanceTypeStable].Values
	all := func(same func(a, b string) bool) bool {
		return !own.others && !slices.ContainsFunc(own.listed, func(t string) bool {
			return !slices.ContainsFunc(seen, func(s string) bool { return same(s, t) })
		})
	}
	return all(func(a, b string) bool { return a == b }), all(func(a, b string) bool { return family(a) == family(b) })
}

func family(instanceType string) string {
	if i := strings.LastIndexByte(instanceType, '.'); i >= 0 {
		return instanceType[:i]
	}
	return instanceType
}

func merge(a *cluster.NodeLabels, b cluster.NodeLabels) *cluster.NodeLabels {
	if a == nil {
		return &b
	}
	merged := &cluster.NodeLabels{Nodes: a.Nodes + b.Nodes, ByKey: map[string]cluster.SeenLabel{}}
	for _, one := range []map[string]cluster.SeenLabel{a.ByKey, b.ByKey} {
		for key := range one {
			inA, inB := a.ByKey[key], b.ByKey[key]
			label := cluster.SeenLabel{All: inA.All && inB.All}
			many := func(l cluster.SeenLabel, in map[string]cluster.SeenLabel) bool {
				_, has := in[key]
				return has && len(l.Values) == 0
			}
			if !many(inA, a.ByKey) && !many(inB, b.ByKey) {
				label.Values = sorted(slices.Concat(inA.Values, inB.Values))
			}
			merged.ByKey[key] = label
		}
	}
	return merged
}

// known are the labels that Karpenter can choose a node by though a NodePool does not mention them.
var known = []string{
	corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelInstanceTypeStable, corev1.LabelArchStable,
	corev1.LabelOSStable, corev1.LabelWindowsBuild, corev1.LabelHostname, "karpenter.sh/capacity-type",
}

// isCustom tells whether Karpenter launches no node for the label unless a NodePool mentions it. Providers know labels of their
// own.
func isCustom(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return !slices.Contains(known, key) && !strings.Contains(domain, "karpenter") &&
		!strings.HasSuffix(domain, "amazonaws.com") && !strings.HasSuffix(domain, "k8s.aws")
}

// maxDoubted bounds the work on a node selection: of one with more terms nothing is doubted.
const maxDoubted = 64

// Doubts are the parts of the node selection that admit the pool and that no node of it may meet all the same: a label that
// neither NodePools nor nodes have, or one that all nodes have otherwise. None where some term is beyond doubt.
func (p *Pool) Doubts(spec *corev1.PodSpec) []Exclusion {
	if required := cluster.RequiredNodes(spec); required != nil && len(required.NodeSelectorTerms) > maxDoubted {
		return nil
	}
	var doubts []Exclusion
	for _, way := range p.ways(spec) {
		if key := doubted(way.offers, way.asked); key != "" {
			doubts = append(doubts, Exclusion{Term: way.term, Key: key})
		} else if key := doubted(way.offers, way.selector); key != "" {
			doubts = append(doubts, Exclusion{Term: -1, Key: key})
		} else {
			return nil
		}
	}
	return slices.Compact(doubts)
}

// doubted is the first label that is in doubt for the first of the offers, if there is one for each.
func doubted(offers []*offer, asked []label) (key string) {
	for _, o := range offers {
		i := slices.IndexFunc(asked, func(l label) bool { return o.doubts(&l) })
		if i < 0 {
			return ""
		}
		if key == "" {
			key = asked[i].key
		}
	}
	return key
}

func (o *offer) doubts(asked *label) bool {
	own, mentioned := o.byKey[asked.key]
	switch {
	case mentioned:
		return o.tooFew(&own, asked) // and a node that there is would do
	case !asked.present, asked.key == corev1.LabelHostname, o.seen.Nodes == 0 && !o.launched:
		return false
	}
	open := anything()
	_, onNodes := o.seen.ByKey[asked.key]
	settled := onNodes && (asked.key == corev1.LabelArchStable || asked.key == corev1.LabelOSStable)
	return (isCustom(asked.key) || settled) && !o.isSeen(&open, asked)
}

// Offer says what the pool's NodePools and nodes offer of a label, in a short clause.
func (p *Pool) Offer(key string) string {
	switch key {
	case corev1.LabelHostname, metav1.ObjectNameField:
		return "has none of these nodes"
	}
	var offers []string
	mentioned := false
	for _, o := range p.offers {
		text := "any " + key
		if own, ok := o.byKey[key]; ok {
			mentioned, text = true, o.describe(key, &own)
		} else if label := o.seen.ByKey[key]; len(label.Values) > 0 {
			mentioned, text = true, key+" "+strings.Join(label.Values, ", ")+" on the nodes seen"
		}
		if !slices.Contains(offers, text) {
			offers = append(offers, text)
		}
	}
	if !mentioned {
		return "has " + key + " neither in a NodePool nor on a node seen"
	}
	return "offers " + strings.Join(offers, " or ")
}
