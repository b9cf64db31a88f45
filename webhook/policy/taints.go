package policy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/placement"
)

// isHard tells whether a taint keeps pods off a node.
func isHard(taint corev1.Taint) bool {
	return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
}

// keepsOthersAway tells a taint that keeps pods away, for as long as the node is there. Health taints that HyperPod puts
// on every node do not count: whatever runs in such a cluster tolerates them.
func keepsOthersAway(taint corev1.Taint) bool {
	return isHard(taint) && !cluster.IsLifecycleTaint(taint.Key)
}

// isTolerated tells whether one of the tolerations covers the taint permanently.
func isTolerated(tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	return slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
		return t.TolerationSeconds == nil && placement.Tolerates(&t, taint)
	})
}

// fillTolerations and checkTolerations serve placeholders and Workspace pods.
func fillTolerations(o *Object, patch *placement.Patch) {
	if o.Pool != nil && !isBound(o) {
		o.Pool.Tolerate(o.Spec, o.specPointer(), patch)
	}
}

// checkTolerations says nothing of an object that excludes its pool: it needs no toleration of taints that it never meets.
func checkTolerations(o *Object) {
	if o.Pool == nil || o.fit().Conflict {
		return
	}
	taints, _ := o.Pool.Untolerated(o.Spec.Tolerations)
	if len(taints)+len(o.Pool.Unknown) == 0 {
		return
	}
	path := o.specPath("tolerations")
	for i := range taints {
		key, how := taints[i].ToString(), "not tolerated"
		if slices.ContainsFunc(o.Spec.Tolerations, func(t corev1.Toleration) bool { return placement.Tolerates(&t, &taints[i]) }) {
			how = "tolerated for a limited time only"
		}
		o.required(path, "taint %s of pool %s is %s", key, o.pool, how).withKey(key)
	}
	for _, unknown := range o.Pool.Unknown {
		o.notVerified(path, "%s, so its taints are not known", unknown)
	}
}
