package placement

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// aliases are labels that Karpenter and its providers read as others.
var aliases = map[string]string{
	"beta.kubernetes.io/arch":           corev1.LabelArchStable,
	"beta.kubernetes.io/os":             corev1.LabelOSStable,
	corev1.LabelInstanceType:            corev1.LabelInstanceTypeStable,
	corev1.LabelFailureDomainBetaZone:   corev1.LabelTopologyZone,
	corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
	"topology.ebs.csi.aws.com/zone":     corev1.LabelTopologyZone,
	"topology.gke.io/zone":              corev1.LabelTopologyZone,
	"topology.disk.csi.azure.com/zone":  corev1.LabelTopologyZone,
}

// NormalKey is the label that Karpenter reads a label as: itself, but for deprecated names and those of CSI drivers.
func NormalKey(key string) string {
	if normal, ok := aliases[key]; ok {
		return normal
	}
	return key
}

// Names are the labels that Karpenter reads as the label, itself among them, sorted.
func Names(key string) []string {
	names := []string{key}
	for alias, normal := range aliases {
		if normal == key {
			names = append(names, alias)
		}
	}
	slices.Sort(names)
	return names
}

// label is what a node selection asks of one label.
type label struct {
	key string // as Karpenter reads it
	values
}

// labels reads requirements by label, sorted; base is what is asked already.
func labels(requirements []corev1.NodeSelectorRequirement, base []label) []label {
	if len(requirements) == 0 {
		return nil
	}
	requirements = slices.Clone(requirements)
	for i := range requirements {
		requirements[i].Key = NormalKey(requirements[i].Key)
	}
	slices.SortStableFunc(requirements, func(a, b corev1.NodeSelectorRequirement) int { return strings.Compare(a.Key, b.Key) })
	all := make([]label, 0, len(requirements))
	for start := 0; start < len(requirements); {
		key, end := requirements[start].Key, start+1
		for end < len(requirements) && requirements[end].Key == key {
			end++
		}
		from := anything()
		if i, found := find(base, key); found {
			from = base[i].values
		}
		all = append(all, label{key, from.read(requirements[start:end])})
		start = end
	}
	return all
}

func find(all []label, key string) (int, bool) {
	return slices.BinarySearchFunc(all, key, func(l label, key string) int { return strings.Compare(l.key, key) })
}
