package policy

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/placement"
)

// Applies to: the placeholders of pools whose Workspaces have volumes that can be attached in some zones only.
// Requires: a placeholder in a zone of each such volume.
// Why: a warm node in another zone is of no use to a Workspace whose volume cannot follow it.
var placeholderZones = &Rule{
	ID:       "placeholder-zones",
	Summary:  "Placeholders are in all zones in which Workspaces of the pool have volumes; a warm node elsewhere is of no use to them.",
	Fix:      "Spread the placeholders by topologySpreadConstraints on " + corev1.LabelTopologyZone + ", with as many replicas as zones, or have one placeholder Deployment in each zone.",
	Subject:  PlaceholderDeployment,
	Severity: SeverityInfo,
	audit:    auditZones,
}

// zoneKeys are the labels by which volumes name zones, of old and of drivers too.
var zoneKeys = []string{corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone, "topology.ebs.csi.aws.com/zone", "topology.gke.io/zone", "topology.disk.csi.azure.com/zone"}

func auditZones(a *Audit) {
	a.unread("Pods", a.facts.Pods)
	a.unread("PersistentVolumeClaims", a.facts.Claims)
	a.unread("PersistentVolumes", a.facts.Volumes)
	used := a.zonesInUse()
	for _, pool := range a.pools.All() {
		placeholders := slices.DeleteFunc(a.Of(pool.Config.Name), func(o *Object) bool { return isPaused(o.Deployment) })
		volumes := used[pool.Config.Name]
		if len(placeholders) == 0 || len(volumes) == 0 {
			continue
		}
		covered, known := a.coveredZones(placeholders, len(volumes))
		if !known {
			continue
		}
		first := placeholders[0]
		for _, zones := range slices.Sorted(maps.Keys(volumes)) {
			if !slices.ContainsFunc(strings.Split(zones, ", "), func(zone string) bool { return covered[zone] }) {
				first.invalid(first.specPath("topologySpreadConstraints"), len(first.Spec.TopologySpreadConstraints),
					"Workspaces of pool %s (%d) have volumes in %s, and its placeholders are in %s; the pool has nodes in %s",
					pool.Config.Name, volumes[zones], zones, listed(covered), listed(a.zonesOf(pool)))
			}
		}
	}
}

// zonesInUse counts, by pool, the Workspaces whose volumes can only be attached in the zones, joined by commas.
func (a *Audit) zonesInUse() map[string]map[string]int {
	used := map[string]map[string]int{}
	for _, o := range a.Workspaces {
		if o.Pool == nil {
			continue
		}
		own := map[string]bool{}
		for i := range o.Spec.Volumes {
			claim := a.facts.Claims.Get(o.Namespace + "/" + claimName(o, &o.Spec.Volumes[i]))
			if claim == nil {
				continue
			}
			if zones := volumeZones(a.facts.Volumes.Get(claim.Spec.VolumeName)); len(zones) > 0 {
				own[strings.Join(zones, ", ")] = true
			}
		}
		for zones := range own {
			if used[o.pool] == nil {
				used[o.pool] = map[string]int{}
			}
			used[o.pool][zones]++
		}
	}
	return used
}

func claimName(o *Object, v *corev1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return o.Name + "-" + v.Name
	default:
		return ""
	}
}

// volumeZones are the zones that a volume can be attached in, sorted; none: anywhere, or no one can tell.
func volumeZones(v *corev1.PersistentVolume) []string {
	if v == nil || v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil {
		return nil
	}
	var zones []string
	for _, term := range v.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, r := range term.MatchExpressions {
			if slices.Contains(zoneKeys, r.Key) && r.Operator == corev1.NodeSelectorOpIn {
				zones = append(zones, r.Values...)
			}
		}
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}

// coveredZones are the zones that placeholders are in, by the nodes of their pods; of those that have none yet, the zones
// that they are bound to. known is false where they go by themselves to as many zones as are needed, or may go anywhere.
func (a *Audit) coveredZones(placeholders []*Object, needed int) (zones map[string]bool, known bool) {
	zones = map[string]bool{}
	for _, o := range placeholders {
		pods, bound := a.Pods(o), 0
		if spreadsOverZones(o.Spec) && (o.Deployment.Spec.Replicas == nil || max(int(ReplicasOf(o.Deployment)), len(pods)) >= needed) {
			return nil, false
		}
		for _, pod := range pods {
			if node := a.facts.Nodes.Get(pod.Spec.NodeName); node != nil && node.Labels[corev1.LabelTopologyZone] != "" {
				zones[node.Labels[corev1.LabelTopologyZone]] = true
				bound++
			}
		}
		if pinned := pinnedZones(o.Spec); len(pinned) == 1 {
			zones[pinned[0]] = true
		} else if bound == 0 {
			return nil, false
		}
	}
	return zones, true
}

func spreadsOverZones(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.TopologyKey == corev1.LabelTopologyZone && c.LabelSelector != nil
	})
}

// pinnedZones are the zones that the node selection leaves a pod; none: any.
func pinnedZones(spec *corev1.PodSpec) []string {
	if zone, ok := spec.NodeSelector[corev1.LabelTopologyZone]; ok {
		return []string{zone}
	}
	required := cluster.RequiredNodes(spec)
	if required == nil {
		return nil
	}
	var zones []string
	for _, term := range required.NodeSelectorTerms {
		i := slices.IndexFunc(term.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool {
			return r.Key == corev1.LabelTopologyZone && r.Operator == corev1.NodeSelectorOpIn
		})
		if i < 0 {
			return nil
		}
		zones = append(zones, term.MatchExpressions[i].Values...)
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}

// zonesOf are the zones of a pool's nodes.
func (a *Audit) zonesOf(pool *placement.Pool) map[string]bool {
	zones := map[string]bool{}
	for _, node := range a.Nodes(pool) {
		if zone := node.Labels[corev1.LabelTopologyZone]; zone != "" {
			zones[zone] = true
		}
	}
	return zones
}

func listed(zones map[string]bool) string {
	return cmp.Or(clipped(slices.Sorted(maps.Keys(zones))), "none that is known")
}
