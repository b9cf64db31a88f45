package policy

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cpa"
)

// Applies to: placeholder Deployments; 0 replicas are a pause, which is always allowed.
// Requires: 2 replicas or more. Where a CPA sets them: its min is 2 or more, manifests leave them out, and they are
// within its bounds.
// Why: with one placeholder nothing is warm while it is refilled. What manifests set and CPA sets too goes up and down
// with every apply, and each time warm nodes go or new ones start.
var placeholderReplicas = &Rule{
	ID:       "placeholder-replicas",
	Summary:  "2 replicas or more, or a CPA with min 2 or more; manifests leave replicas out where a CPA sets them. 0 is a pause.",
	Fix:      "Set replicas to 2 or more.",
	Subject:  PlaceholderDeployment,
	Severity: SeverityWarning,
	audit: func(a *Audit) {
		for _, o := range a.Placeholders {
			switch s := a.scaledBy(o); {
			case isPaused(o.Deployment):
			case s != nil:
				scaledReplicas(o, s)
			case ReplicasOf(o.Deployment) < 2:
				o.invalid(replicasPath, ReplicasOf(o.Deployment), "nothing is warm while the only placeholder is refilled")
			}
		}
	},
}

func scaledReplicas(o *Object, s *cpa.Scaler) {
	if set := manifestReplicas(o.Deployment); set != nil {
		o.invalid(replicasPath, *set, "set in the manifest, while %s sets them too: each apply undoes what it has set", s).
			withFix("Leave spec.replicas out of the manifest.")
		return
	}
	if s.Params == nil || s.Linear == nil || s.WantsZero {
		return // not known, a ladder of chosen steps, or a wish for 0 that cpa-bounds answers
	}
	replicas, least, most := int(ReplicasOf(o.Deployment)), max(s.Linear.Min, 1), s.Linear.Max
	if s.Linear.PreventSinglePointFailure && most != 0 {
		most = max(most, 2)
	}
	const elsewhere = "Let nothing else set the replicas, and look at CPA's log."
	switch {
	case least < 2:
		o.invalid(replicasPath, least, "min of %s is %d: nothing is warm while the only placeholder is refilled", s, least).
			withFix("Set min to 2 or more in CPA's parameters.")
	case o.Deployment.Spec.Replicas != nil && replicas < least:
		o.invalid(replicasPath, replicas, "below min %d of %s: it does not work, or something else sets them", least, s).withFix(elsewhere)
	case most != 0 && replicas > most:
		o.invalid(replicasPath, replicas, "above max %d of %s: it does not work, or something else sets them", most, s).withFix(elsewhere)
	}
}

// manifestReplicas are the replicas that a manifest sets; nil: none, or no one can tell. What has no uid comes from a
// file, of what an API server has, kubectl apply keeps what the file said.
func manifestReplicas(d *appsv1.Deployment) *int32 {
	if d.UID == "" {
		return d.Spec.Replicas
	}
	var applied appsv1.Deployment
	if err := json.Unmarshal([]byte(d.Annotations[corev1.LastAppliedConfigAnnotation]), &applied); err != nil {
		return nil
	}
	return applied.Spec.Replicas
}
