package policy

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
)

// Applies to: placeholder Deployments.
// Requires: at most one of a CPA, HorizontalPodAutoscalers, and warmpool where size.mode of the pool is Apply. Two CPAs are
// cpa-target's.
// Why: of two writers each undoes what the other has set; placeholders come and go all day, and nodes with them.
var poolTwoScalers = &Rule{
	ID:       "pool-two-scalers",
	Summary:  "One alone sets the replicas of a placeholder: a CPA, a HorizontalPodAutoscaler, or warmpool where size.mode of the pool is Apply.",
	Fix:      "Keep one: remove the CPA or the HorizontalPodAutoscaler, or set size.mode: Recommend for the pool.",
	Subject:  WarmPool,
	Severity: SeverityError,
	audit: func(a *Audit) {
		a.unread("HorizontalPodAutoscalers", a.facts.HorizontalPodAutoscalers)
		for _, o := range a.Placeholders {
			scalers := a.otherScalers(o)
			if s := o.Pool; s != nil && s.Config.Size != nil && s.Config.Size.Mode == config.Apply {
				scalers = append(scalers, fmt.Sprintf("warmpool (size of pool %s)", s.Config.Name))
			}
			if len(scalers) > 1 {
				o.invalid(field.NewPath("spec", "replicas"), ReplicasOf(o.Deployment), "%s set it: each undoes what the other has set", strings.Join(scalers, " and "))
			}
		}
	},
}

// otherScalers are the CPA and the HorizontalPodAutoscalers that scale a placeholder, in words.
func (a *Audit) otherScalers(o *Object) []string {
	var found []string
	if s := a.scaledBy(o); s != nil {
		found = append(found, s.String())
	}
	for _, hpa := range a.facts.HorizontalPodAutoscalers.All() {
		if ref := hpa.Spec.ScaleTargetRef; hpa.Namespace == o.Namespace && ref.Kind == "Deployment" && ref.Name == o.Name {
			found = append(found, "HorizontalPodAutoscaler "+hpa.Namespace+"/"+hpa.Name)
		}
	}
	return found
}
