package policy

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Applies to: placeholder Deployments.
// Requires: no toleration for taints that no node of the pool has, and none for all taints at once. Where neither a node of
// the pool nor its NodePool is known, no one can tell.
// Why: such a placeholder can hold sick or foreign nodes, and one that tolerates karpenter.sh/disrupted is not drained.
var placeholderTolerationsExcess = &Rule{
	ID:       "placeholder-tolerations-excess",
	Summary:  "No toleration for taints that no node of the pool has, and no toleration without a key.",
	Fix:      "Remove the toleration from the pod template.",
	Subject:  PlaceholderDeployment,
	Action:   config.Warn,
	Severity: SeverityWarning,
	check:    checkTolerationsExcess,
}

func checkTolerationsExcess(o *Object) []Finding {
	if o.Pool == nil {
		return nil
	}
	var findings []Finding
	unknown := false
	for i := range o.Spec.Tolerations {
		t := &o.Spec.Tolerations[i]
		path, text := o.specPath("tolerations").Index(i), tolerationText(t)
		switch {
		case t.Key == "":
			findings = append(findings, invalid(path, text, fmt.Sprintf("toleration %s covers every taint, those of sick and foreign nodes too", text)).withKey(text))
		case isDefaultToleration(t), hasTaintFor(o.Pool, t):
		case len(o.Pool.Unknown) > 0 || o.unseen():
			unknown = true
		default:
			findings = append(findings, invalid(path, text, fmt.Sprintf("toleration %s is for a taint that no node of pool %s has", text, o.Pool.Config.Name)).withKey(text))
		}
	}
	switch {
	case unknown && len(o.Pool.Unknown) > 0:
		findings = append(findings, notVerified(o.specPath("tolerations"), strings.Join(o.Pool.Unknown, "; ")))
	case unknown:
		findings = append(findings, notVerified(o.specPath("tolerations"),
			fmt.Sprintf("no node of pool %s is known, nor a NodePool that starts them, and so their taints are not", o.Pool.Config.Name)))
	}
	return findings
}

// unseen tells that nothing says which taints the pool's nodes have: no NodePool, and no node.
func (o *Object) unseen() bool {
	return len(o.Pool.NodePools) == 0 && !o.sizes.Pool(o.Pool.Config.Name).Seen()
}

// isDefaultToleration tells whether it is one of those that the API server gives to every pod: for a time only.
func isDefaultToleration(t *corev1.Toleration) bool {
	return (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable) && t.TolerationSeconds != nil
}

func hasTaintFor(pool *placement.Pool, t *corev1.Toleration) bool {
	for i := range pool.NodeTaints {
		if placement.Tolerates(t, &pool.NodeTaints[i]) {
			return true
		}
	}
	return false
}

// tolerationText writes a toleration as the taints that it covers: KEY=VALUE:EFFECT, with * for "any".
func tolerationText(t *corev1.Toleration) string {
	text := t.Key
	if text == "" {
		text = "*"
	}
	if t.Operator != corev1.TolerationOpExists {
		text += "=" + t.Value
	}
	if t.Effect != "" {
		text += ":" + string(t.Effect)
	}
	return text
}
