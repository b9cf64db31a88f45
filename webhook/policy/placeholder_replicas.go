package policy

import (
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
)

// Applies to: placeholder Deployments; 0 replicas are a pause, which is always allowed.
// Requires: 2 replicas or more. Where a CPA sets them: its min is 2 or more, manifests leave them out, and they are
// within its bounds.
// Why: with one placeholder nothing is warm while it is refilled. What manifests set and CPA sets too goes up and down
// with every apply, and each time warm nodes go or new ones start.
var placeholderReplicas = &Rule{
	ID:        "placeholder-replicas",
	Summary:   "2 replicas or more, or a CPA with min 2 or more; manifests leave replicas out where a CPA sets them. 0 is a pause.",
	Fix:       "Set replicas to 2 or more.",
	Subject:   PlaceholderDeployment,
	Action:    config.Audit,
	Severity:  SeverityWarning,
	AuditOnly: true,
	around:    checkReplicas,
}

func checkReplicas(a *Audit) []Finding {
	var findings []Finding
	for _, o := range a.placeholders {
		path, replicas := field.NewPath("spec", "replicas"), replicasOf(o.Deployment)
		var found []Finding
		switch s := a.scaledBy(o); {
		case replicas == 0:
		case s != nil:
			found = scaledReplicas(o.Deployment, s, path, replicas)
		case replicas < 2:
			found = []Finding{invalid(path, replicas, "nothing is warm while the only placeholder is refilled")}
		}
		for _, f := range found {
			findings = append(findings, f.about("Deployment", o.Namespace, o.Name, o.PoolName()))
		}
	}
	return findings
}

// scaledBy is the running CPA that sets the placeholder's replicas; nil: none, or one that takes no parameters and so
// leaves them alone.
func (a *Audit) scaledBy(o *Object) *autoscaler {
	for _, s := range a.autoscalers {
		if !s.paused() && s.params.fault == "" &&
			slices.ContainsFunc(s.targets, func(t scaleTarget) bool { return t.placeholder == o }) {
			return s
		}
	}
	return nil
}

func scaledReplicas(d *appsv1.Deployment, s *autoscaler, path *field.Path, replicas int32) []Finding {
	if set := manifestReplicas(d); set != nil {
		return []Finding{invalid(path, *set, fmt.Sprintf("set in the manifest, while %s sets them too: each apply undoes what it has set", s)).
			withFix("Leave spec.replicas out of the manifest.")}
	}
	p := s.params.autoscalerParams
	if p == nil || p.Linear == nil || p.WantsZero {
		return nil // not known, a ladder of chosen steps, or a wish for 0 that cpa-bounds answers
	}
	least, most := max(p.Linear.Min, 1), p.Linear.Max
	if p.Linear.PreventSinglePointFailure && most != 0 {
		most = max(most, 2)
	}
	const elsewhere = "Let nothing else set the replicas, and look at CPA's log."
	switch {
	case least < 2:
		return []Finding{invalid(path, least, fmt.Sprintf("min of %s is %d: nothing is warm while the only placeholder is refilled", s, least)).
			withFix("Set min to 2 or more in CPA's parameters.")}
	case d.Spec.Replicas != nil && int(replicas) < least:
		return []Finding{invalid(path, replicas, fmt.Sprintf("below min %d of %s: it does not work, or something else sets them", least, s)).withFix(elsewhere)}
	case most != 0 && int(replicas) > most:
		return []Finding{invalid(path, replicas, fmt.Sprintf("above max %d of %s: it does not work, or something else sets them", most, s)).withFix(elsewhere)}
	}
	return nil
}

// replicasOf are the replicas that the API server reads.
func replicasOf(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
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
