package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Applies to: placeholder Deployments.
// Requires: in a pool with accelerators, at least one of them in the main containers; requests equal limits for every extended resource.
// Why: a placeholder without the accelerator lets Karpenter pick a node without it, and leaves none to give back.
var placeholderAccelerator = &Rule{
	ID:       "placeholder-accelerator",
	Summary:  "In a pool with accelerators it asks for at least one of them, and extended resources have requests equal to limits.",
	Fix:      "Set the accelerator in requests and limits of the main container, with one quantity.",
	Subject:  PlaceholderDeployment,
	Action:   config.Deny,
	Severity: SeverityError,
	check:    checkAccelerator,
}

func checkAccelerator(o *Object) []Finding {
	var findings []Finding
	held := false
	for i := range o.Spec.Containers {
		c := &o.Spec.Containers[i]
		for _, name := range extendedResources(c.Resources) {
			request, limit := c.Resources.Requests[name], c.Resources.Limits[name]
			held = held || o.Pool != nil && o.Pool.Offers([]string{string(name)}) && limit.Sign() > 0
			if _, asked := c.Resources.Requests[name]; asked && request.Cmp(limit) != 0 {
				path := o.specPath("containers").Index(i).Child("resources", "limits").Key(string(name))
				findings = append(findings, invalid(path, limit.String(), fmt.Sprintf("container %s requests %s: the API server refuses pods whose limit differs", c.Name, request.String())).
					withKey("limit of "+c.Name+" "+string(name)))
			}
		}
	}
	if o.Pool != nil && len(o.Pool.Config.Accelerators) > 0 && !held {
		findings = append(findings, required(o.specPath("containers").Index(0).Child("resources", "limits"),
			fmt.Sprintf("pool %s has accelerators (%s) and the placeholder holds none: a Workspace would find no free one on its node",
				o.Pool.Config.Name, strings.Join(o.Pool.Config.Accelerators, ", "))).withKey("none held"))
	}
	return findings
}

// extendedResources are the names of the extended resources in requests and limits, sorted.
func extendedResources(r corev1.ResourceRequirements) []corev1.ResourceName {
	all := maps.Clone(r.Requests)
	if all == nil {
		all = corev1.ResourceList{}
	}
	maps.Copy(all, r.Limits)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name corev1.ResourceName) bool { return !placement.IsExtendedResource(name) })
}
