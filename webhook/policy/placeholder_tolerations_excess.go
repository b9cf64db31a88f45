package policy

import (
	"cmp"
	"slices"
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

func checkTolerationsExcess(o *Object) {
	if o.Pool == nil {
		return
	}
	unseen := len(o.Pool.NodePools) == 0 && !o.e.sizes.Pool(o.pool).Seen()
	unknown := false
	for i := range o.Spec.Tolerations {
		t := &o.Spec.Tolerations[i]
		path, covers := o.specPath("tolerations").Index(i), tolerationText(t)
		switch {
		case t.Key == "":
			o.invalid(path, covers, "toleration %s covers every taint, those of sick and foreign nodes too", covers).withKey(covers)
		case isDefaultToleration(t):
		case slices.ContainsFunc(o.Pool.NodeTaints, func(taint corev1.Taint) bool { return placement.Tolerates(t, &taint) }):
		case len(o.Pool.Unknown) > 0 || unseen:
			unknown = true
		default:
			o.invalid(path, covers, "toleration %s is for a taint that no node of pool %s has", covers, o.pool).withKey(covers)
		}
	}
	switch {
	case unknown && len(o.Pool.Unknown) > 0:
		o.notVerified(o.specPath("tolerations"), "%s", strings.Join(o.Pool.Unknown, "; "))
	case unknown:
		o.notVerified(o.specPath("tolerations"), "no node of pool %s is known, nor a NodePool that starts them, and so their taints are not", o.pool)
	}
}

// isDefaultToleration tells whether it is one of those that the API server gives to every pod: for a time only.
func isDefaultToleration(t *corev1.Toleration) bool {
	return (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable) && t.TolerationSeconds != nil
}

// tolerationText writes a toleration as the taints that it covers: KEY=VALUE:EFFECT, with * for "any".
func tolerationText(t *corev1.Toleration) string {
	text := cmp.Or(t.Key, "*")
	if t.Operator != corev1.TolerationOpExists {
		text += "=" + t.Value
	}
	if t.Effect != "" {
		text += ":" + string(t.Effect)
	}
	return text
}
