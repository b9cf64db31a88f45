package placement

import (
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
)

// hardTaints are the taints that keep pods away and that the filter keeps.
func hardTaints(taints []corev1.Taint, keep func(corev1.Taint) bool) []corev1.Taint {
	var hard []corev1.Taint
	for _, t := range taints {
		if (t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute) && keep(t) {
			hard = append(hard, t)
		}
	}
	return hard
}

func sameTaint(a, b corev1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
}

// tolerationsFor gives the distinct taints, and for each the toleration that covers it exactly: Exists for an
// accelerator's, and where one key has several values (two tolerations of one key and effect break later updates
// of a pod); else Equal. A lifecycle taint is tolerated with its value only.
func tolerationsFor(taints []corev1.Taint, isAccelerator func(key string) bool) ([]corev1.Taint, []corev1.Toleration) {
	var distinct []corev1.Taint
	for _, t := range taints {
		t.TimeAdded = nil
		if !slices.ContainsFunc(distinct, func(have corev1.Taint) bool { return sameTaint(have, t) }) {
			distinct = append(distinct, t)
		}
	}
	tolerations := make([]corev1.Toleration, 0, len(distinct))
	for _, t := range distinct {
		toleration := corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: t.Effect}
		severalValues := slices.ContainsFunc(distinct, func(other corev1.Taint) bool {
			return other.Key == t.Key && other.Effect == t.Effect && other.Value != t.Value
		})
		if isAccelerator(t.Key) || severalValues && !cluster.IsLifecycleTaint(t.Key) {
			toleration.Operator, toleration.Value = corev1.TolerationOpExists, ""
		}
		tolerations = append(tolerations, toleration)
	}
	return distinct, tolerations
}

// Untolerated are the pool's taints that the tolerations do not cover permanently, with the toleration that would.
func (p *Pool) Untolerated(tolerations []corev1.Toleration) ([]corev1.Taint, []corev1.Toleration) {
	var taints []corev1.Taint
	var missing []corev1.Toleration
	for i := range p.Taints {
		if toleratedForever(tolerations, &p.Taints[i]) {
			continue
		}
		taints = append(taints, p.Taints[i])
		if !slices.Contains(missing, p.tolerations[i]) {
			missing = append(missing, p.tolerations[i])
		}
	}
	return taints, missing
}

func toleratedForever(tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	for i := range tolerations {
		t := &tolerations[i]
		if t.TolerationSeconds == nil && Tolerates(t, taint) {
			return true
		}
	}
	return false
}

// Tolerates tells whether the toleration covers the taint. The comparison operators Lt and Gt, which an API server
// may not have switched on, cover nothing.
func Tolerates(t *corev1.Toleration, taint *corev1.Taint) bool {
	return t.ToleratesTaint(logr.Discard(), taint, false)
}

// Tolerate appends one toleration per taint of the pool that is not yet tolerated permanently; what is there stays as it
// is. Nothing happens to a pod in conflict with the pool. pointer is the JSON pointer of spec.
func (p *Pool) Tolerate(spec *corev1.PodSpec, pointer string, patch *Patch) {
	_, missing := p.Untolerated(spec.Tolerations)
	if len(missing) == 0 || p.Fit(spec).Conflict {
		return
	}
	if len(spec.Tolerations) == 0 {
		patch.Add(pointer+"/tolerations", missing)
	} else {
		for _, t := range missing {
			patch.Add(pointer+"/tolerations/-", t)
		}
	}
	spec.Tolerations = append(slices.Clip(spec.Tolerations), missing...)
}
