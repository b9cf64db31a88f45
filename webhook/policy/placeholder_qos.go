package policy

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
)

// Applies to: placeholder Deployments, their main containers.
// Requires: cpu and memory limits equal to the requests.
// Why: the placeholder stands for a fixed part of the node; one that may use more, or is evicted first under memory pressure, does not.
var placeholderQOS = &Rule{
	ID:       "placeholder-qos",
	Summary:  "cpu and memory limits equal the requests.",
	Fix:      "Set cpu and memory in limits to the same values as in requests.",
	Subject:  PlaceholderDeployment,
	Action:   config.Warn,
	Severity: SeverityWarning,
	check:    checkQOS,
}

func checkQOS(o *Object) []Finding {
	// Pod-level resources, where set, are what the kubelet goes by; an empty struct sets none.
	if r := o.Spec.Resources; r != nil && len(r.Requests)+len(r.Limits) > 0 {
		return unequalLimits(o.specPath("resources"), "the pod", *o.Spec.Resources)
	}
	var findings []Finding
	for i := range o.Spec.Containers {
		c := &o.Spec.Containers[i]
		findings = append(findings, unequalLimits(o.specPath("containers").Index(i).Child("resources"), "container "+c.Name, c.Resources)...)
	}
	return findings
}

func unequalLimits(path *field.Path, who string, r corev1.ResourceRequirements) []Finding {
	var findings []Finding
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		limit, limited := r.Limits[name]
		request, requested := r.Requests[name]
		path, key := path.Child("limits").Key(string(name)), who+" "+string(name)
		switch {
		case !limited:
			findings = append(findings, required(path, fmt.Sprintf("%s has no %s limit", who, name)).withKey(key))
		// A limit without a request counts as both.
		case requested && request.Cmp(limit) != 0:
			findings = append(findings, invalid(path, limit.String(), fmt.Sprintf("%s requests %s %s and may use %s", who, request.String(), name, limit.String())).withKey(key))
		}
	}
	return findings
}
