package placement

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
)

// offer is what one NodePool (or one value of a node label) says about the labels of its nodes, by NormalKey.
// A key that it does not mention is open: nothing is concluded from it.
type offer struct {
	byKey map[string]values
	// minValues are how many values Karpenter wants to choose from, by key.
	minValues map[string]int
	// hasNodePool tells that there is a NodePool to go by.
	hasNodePool bool
	// launched tells that Karpenter launches the nodes, and so that only labels that it knows can be asked for.
	launched bool
	// seen are the labels of its nodes.
	seen cluster.NodeLabels
}

func offerOf(np *cluster.NodePool) *offer {
	requirements := slices.Clone(np.Requirements)
	for key, value := range np.Labels {
		requirements = append(requirements, in(key, value))
	}
	requirements = slices.DeleteFunc(requirements, func(r corev1.NodeSelectorRequirement) bool { return r.Key == config.NodePoolLabel })
	o := &offer{byKey: map[string]values{}, minValues: map[string]int{}, hasNodePool: true, launched: !np.Static}
	for _, l := range labels(append(requirements, in(config.NodePoolLabel, np.Name)), nil) {
		o.byKey[l.key] = l.values
	}
	for key, count := range np.MinValues {
		o.minValues[NormalKey(key)] = max(count, o.minValues[NormalKey(key)])
	}
	return o
}

func in(key string, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// within are the offer's nodes that have the label of an In requirement with one of its values: a NodePool may have others
// too, which are no pool's or another's.
func (o *offer) within(r corev1.NodeSelectorRequirement) *offer {
	key := NormalKey(r.Key)
	if own, ok := o.byKey[key]; ok && !own.others {
		o.byKey[key] = own.read([]corev1.NodeSelectorRequirement{r})
	}
	return o
}

// sets tells whether the offer's nodes get the label of an In requirement with one of its values.
func (o *offer) sets(r corev1.NodeSelectorRequirement) bool {
	own, ok := o.byKey[NormalKey(r.Key)]
	asked := anything().read([]corev1.NodeSelectorRequirement{r})
	return ok && !own.others && own.suits(&asked)
}

// Grants tells whether nodes of the NodePool can carry the label with the value because the NodePool mentions it, and
// whether it lists the value rather than leave it to the pods that ask for one.
func Grants(np *cluster.NodePool, key, value string) (can, lists bool) {
	o, asked := offerOf(np), anything().read([]corev1.NodeSelectorRequirement{in(key, value)})
	own, mentioned := o.byKey[NormalKey(key)]
	return mentioned && own.suits(&asked), o.sets(in(key, value))
}

// excludes tells whether the offer mentions the label and cannot have it as asked.
func (o *offer) excludes(asked *label) bool {
	own, mentioned := o.byKey[asked.key]
	if !mentioned {
		return false
	}
	return !own.suits(&asked.values) || o.tooFew(&own, asked) && !o.isSeen(&own, asked)
}

// tooFew tells whether what is asked leaves Karpenter too few values to choose from.
func (o *offer) tooFew(own *values, asked *label) bool {
	atLeast := o.minValues[asked.key]
	if atLeast == 0 {
		return false
	}
	left := own.common(&asked.values)
	return left > 0 && left < atLeast
}

// isSeen tells whether a node may have the label as asked, as far as nodes are known.
func (o *offer) isSeen(own *values, asked *label) bool {
	seen, ok := o.seen.ByKey[asked.key]
	return ok && (len(seen.Values) == 0 || slices.ContainsFunc(seen.Values, func(value string) bool { return own.allow(value) && asked.allow(value) }))
}

// describe says what the offer has of a label that it mentions.
func (o *offer) describe(key string, own *values) string {
	var parts []string
	for _, r := range own.requirements(key) {
		part := fmt.Sprintf("%s %s", r.Key, r.Operator)
		if len(r.Values) > 0 {
			part += " [" + strings.Join(r.Values, ", ") + "]"
		}
		parts = append(parts, part)
	}
	text := strings.Join(parts, " and ")
	if atLeast := o.minValues[key]; atLeast > 0 {
		text += fmt.Sprintf(" with minValues %d", atLeast)
	}
	return text
}
