package config

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ParseTaint reads a taint written as KEY=VALUE:EFFECT or KEY:EFFECT. Errors say which part is wrong, without the taint.
func ParseTaint(s string) (corev1.Taint, error) {
	rest, effect, ok := strings.Cut(s, ":")
	if !ok {
		return corev1.Taint{}, errors.New("has no effect; write KEY=VALUE:EFFECT or KEY:EFFECT, for example dedicated=notebooks:NoSchedule")
	}
	key, value, _ := strings.Cut(rest, "=")
	if len(labelKey.faults(key)) > 0 {
		return corev1.Taint{}, fmt.Errorf("key %q %s", key, labelKey.words)
	}
	if len(labelValue.faults(value)) > 0 {
		return corev1.Taint{}, fmt.Errorf("value %q %s", value, labelValue.words)
	}
	switch e := corev1.TaintEffect(effect); e {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		return corev1.Taint{Key: key, Value: value, Effect: e}, nil
	}
	allowed := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}
	return corev1.Taint{}, fmt.Errorf("effect %q must be NoSchedule or NoExecute%s", effect, didYouMean(effect, allowed))
}

// Taints are the pool's NodeTaints; validation has refused what does not parse.
func (p *Pool) Taints() []corev1.Taint {
	var taints []corev1.Taint
	for _, text := range p.NodeTaints {
		if taint, err := ParseTaint(text); err == nil {
			taints = append(taints, taint)
		}
	}
	return taints
}
