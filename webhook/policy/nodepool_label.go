package policy

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Applies to: pools that Karpenter runs and that go by a node label of their own.
// Requires: some NodePool gives that label, with each of the values, by its template's labels or its requirements.
// Why: pods that ask for a label which Karpenter cannot give to a new node stay Pending, also where old nodes carry it.
var nodePoolLabel = &Rule{
	ID:        "nodepool-label",
	Summary:   "Some NodePool gives the pool's label, with each value, to its nodes: Karpenter starts no node for other labels.",
	Fix:       "Add the label to spec.template.metadata.labels of the pool's NodePool, or correct nodeLabel in the configuration.",
	Subject:   WarmPool,
	Action:    config.Audit,
	Severity:  SeverityError,
	AuditOnly: true,
	around:    checkNodePoolLabels,
}

func checkNodePoolLabels(a *Audit) []Finding {
	var findings []Finding
	for i, pool := range a.pools.All() {
		if pool.Config.NodeLabel == nil || pool.Config.Autoscaler != config.Karpenter {
			continue
		}
		path := field.NewPath("pools").Index(i).Child("nodeLabel")
		for _, f := range nodeLabelFindings(a, pool, path) {
			if f.Object == (Ref{}) {
				f = f.about(config.Kind, "", "", pool.Config.Name)
			}
			findings = append(findings, f)
		}
	}
	return findings
}

func nodeLabelFindings(a *Audit, pool *placement.Pool, path *field.Path) []Finding {
	key := pool.Requirement.Key
	if isRuntimeLabel(key) {
		return []Finding{invalid(path.Child("key"), key, "restricted runtime label: nodes get it when they run, so Karpenter starts none for it; use "+config.NodePoolLabel).
			withFix("Use nodePools instead of nodeLabel: pods then ask for " + config.NodePoolLabel + ".")}
	}
	if !a.facts.NodePools.Known() {
		return []Finding{notVerified(path, "NodePools: "+a.facts.NodePools.Reason())}
	}
	var findings []Finding
	for i, value := range pool.Requirement.Values {
		findings = append(findings, nodeLabelValue(a, pool, path.Child("values").Index(i), value)...)
	}
	return findings
}

// nodeLabelValue looks for NodePools that give the label with the value. One that lists it settles the matter.
func nodeLabelValue(a *Audit, pool *placement.Pool, path *field.Path, value string) []Finding {
	key := pool.Requirement.Key
	var open []Finding
	for name, np := range a.facts.NodePools.All() {
		can, lists := placement.Grants(np, key, value)
		if lists || isProviderLabel(key) && !mentions(np, key) {
			return nil
		}
		if can {
			requirements := field.NewPath("spec", "template", "spec", "requirements")
			i := slices.IndexFunc(np.Requirements, func(r corev1.NodeSelectorRequirement) bool { return r.Key == key })
			open = append(open, invalid(requirements.Index(i), key, fmt.Sprintf("lists no values: nodes get %s=%s only when a pod asks for it, and the NodePool serves other values too", key, value)).
				withFix(fmt.Sprintf("Nothing has to be done; operator In with values [%s] makes the NodePool the pool's own.", value)).
				milder(SeverityInfo).about("NodePool", "", name, pool.Config.Name))
		}
	}
	if len(open) > 0 {
		return open
	}
	if unreadable := a.facts.NodePools.AllMalformed(); len(unreadable) > 0 {
		return []Finding{notVerified(path, fmt.Sprintf("no readable NodePool offers %s=%s, and these cannot be read: %s", key, value, clip(strings.Join(unreadable, ", "))))}
	}
	f := invalid(path, value, fmt.Sprintf("no NodePool offers %s=%s: pods stay Pending", key, value))
	return []Finding{orElsewhere(f, a.facts.NodePools, fmt.Sprintf("no NodePool among these files offers %s=%s: where none does, pods stay Pending", key, value))}
}

func mentions(np *cluster.NodePool, key string) bool {
	_, labelled := np.Labels[key]
	return labelled || slices.ContainsFunc(np.Requirements, func(r corev1.NodeSelectorRequirement) bool { return r.Key == key })
}

// isRuntimeLabel tells the labels that nodes have and no NodePool may set.
func isRuntimeLabel(key string) bool {
	if key == config.NodePoolLabel || key == capacityType {
		return false
	}
	domain, _, _ := strings.Cut(key, "/")
	return key == corev1.LabelHostname || domain == "karpenter.sh" || strings.HasSuffix(domain, ".karpenter.sh")
}

// isProviderLabel tells the labels that Karpenter and its providers know of themselves: no NodePool has to name them.
func isProviderLabel(key string) bool {
	switch key {
	case corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelInstanceTypeStable, corev1.LabelArchStable,
		corev1.LabelOSStable, corev1.LabelWindowsBuild, capacityType:
		return true
	}
	return slices.ContainsFunc([]string{"karpenter.k8s.", "karpenter.azure.com/", "eks.amazonaws.com/", "karpenter.sagemaker.amazonaws.com/", "sagemaker.amazonaws.com/"},
		func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}
