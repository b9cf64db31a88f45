package policy

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Applies to: placeholder Deployments.
// Requires: a rolling update with maxSurge 0, or Recreate.
// Why: placeholders never share a node, so every surge pod needs one more node; where there is none the rollout hangs.
var placeholderRollout = &Rule{
	ID:       "placeholder-rollout",
	Summary:  "Rolls out with maxSurge 0 and maxUnavailable at least 1, or by Recreate: a surge pod needs one more node.",
	Fix:      "Set strategy.rollingUpdate to maxSurge: 0, maxUnavailable: 1.",
	Subject:  PlaceholderDeployment,
	Fills:    "strategy, where it is the API server's default",
	Action:   config.Warn,
	Severity: SeverityWarning,
	check:    checkRollout,
	mutate:   fillRollout,
}

// apiDefault is maxSurge and maxUnavailable where no one set them.
var apiDefault = intstr.FromString("25%")

func rollout(d *appsv1.Deployment) (surge, unavailable intstr.IntOrString, recreate bool) {
	surge, unavailable = apiDefault, apiDefault
	if r := d.Spec.Strategy.RollingUpdate; r != nil {
		surge, unavailable = ptr.Deref(r.MaxSurge, apiDefault), ptr.Deref(r.MaxUnavailable, apiDefault)
	}
	return surge, unavailable, d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType
}

func fillRollout(o *Object, patch *placement.Patch) {
	surge, unavailable, recreate := rollout(o.Deployment)
	if recreate || surge != apiDefault || unavailable != apiDefault {
		return
	}
	zero, one := intstr.FromInt32(0), intstr.FromInt32(1)
	strategy := &o.Deployment.Spec.Strategy
	filled := &appsv1.RollingUpdateDeployment{MaxSurge: &zero, MaxUnavailable: &one}
	switch {
	case strategy.Type == "" && strategy.RollingUpdate == nil:
		patch.Add("/spec/strategy", appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: filled})
	case strategy.RollingUpdate == nil:
		patch.Add("/spec/strategy/rollingUpdate", filled)
	default:
		patch.Add("/spec/strategy/rollingUpdate/maxSurge", zero)
		patch.Add("/spec/strategy/rollingUpdate/maxUnavailable", one)
		if strategy.Type == "" {
			patch.Add("/spec/strategy/type", appsv1.RollingUpdateDeploymentStrategyType)
		}
	}
	strategy.Type, strategy.RollingUpdate = appsv1.RollingUpdateDeploymentStrategyType, filled
}

func checkRollout(o *Object) {
	surge, unavailable, recreate := rollout(o.Deployment)
	if recreate {
		return
	}
	strategy, replicas := field.NewPath("spec", "strategy", "rollingUpdate"), int(ReplicasOf(o.Deployment))
	path := strategy.Child("maxSurge")
	extra, err := intstr.GetScaledValueFromIntOrPercent(&surge, replicas, true)
	switch {
	case err != nil:
		o.invalid(path, surge.String(), "maxSurge is neither a number nor a percentage")
	case isZero(surge) && isZero(unavailable):
		o.invalid(strategy.Child("maxUnavailable"), unavailable.String(),
			"maxSurge and maxUnavailable are both 0: nothing could roll, and the API server refuses it")
	case extra > 0:
		o.invalid(path, surge.String(), "a rollout needs more nodes, for its surge pods (%d for %d replicas), or hangs where there are none", extra, replicas).
			withAmount(int64(extra))
	}
}

// isZero tells whether nothing is meant, whatever the number of replicas; a percentage that rounds down to 0 counts as 1.
func isZero(v intstr.IntOrString) bool {
	return v == intstr.FromInt32(0) || v == intstr.FromString("0%")
}
