package policy

import (
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

func checkQOS(o *Object) {
	// Pod-level resources, where set, are what the kubelet goes by; an empty struct sets none.
	if r := o.Spec.Resources; r != nil && len(r.Requests)+len(r.Limits) > 0 {
		unequalLimits(o, o.specPath("resources"), "the pod", r)
		return
	}
	for i := range o.Spec.Containers {
		c := &o.Spec.Containers[i]
		unequalLimits(o, o.specPath("containers").Index(i).Child("resources"), "container "+c.Name, &c.Resources)
	}
}

func unequalLimits(o *Object, path *field.Path, who string, r *corev1.ResourceRequirements) {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		limit, limited := r.Limits[name]
		request, requested := r.Requests[name]
		path, key := path.Child("limits").Key(string(name)), who+" "+string(name)
		switch {
		case !limited:
			o.required(path, "%s has no %s limit", who, name).withKey(key)
		// A limit without a request counts as both.
		case requested && request.Cmp(limit) != 0:
			o.invalid(path, limit.String(), "%s requests %s %s and may use %s", who, request.String(), name, limit.String()).withKey(key)
		}
	}
}
