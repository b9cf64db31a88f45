package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Applies to: placeholder Deployments.
// Requires: in a pool with accelerators, at least one of them in containers that stay; requests equal limits for every extended resource.
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
	for i := range o.Spec.InitContainers {
		c := &o.Spec.InitContainers[i]
		held = held || isSidecar(c) && holdsAccelerator(o, c)
		findings = append(findings, unequalDevices(o.specPath("initContainers").Index(i), c)...)
	}
	for i := range o.Spec.Containers {
		c := &o.Spec.Containers[i]
		held = held || holdsAccelerator(o, c)
		findings = append(findings, unequalDevices(o.specPath("containers").Index(i), c)...)
	}
	if o.Pool != nil && len(o.Pool.Config.Accelerators) > 0 && !held {
		findings = append(findings, required(o.specPath("containers").Index(0).Child("resources", "limits"),
			fmt.Sprintf("pool %s has accelerators (%s) and the placeholder holds none: a Workspace would find no free one on its node",
				o.Pool.Config.Name, strings.Join(o.Pool.Config.Accelerators, ", "))).withKey("none held"))
	}
	return findings
}

// isSidecar tells whether an init container runs until the pod ends.
func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func holdsAccelerator(o *Object, c *corev1.Container) bool {
	return o.Pool != nil && slices.ContainsFunc(extendedResources(c.Resources), func(name corev1.ResourceName) bool {
		request, limit := c.Resources.Requests[name], c.Resources.Limits[name]
		return o.Pool.Offers([]string{string(name)}) && (request.Sign() > 0 || limit.Sign() > 0)
	})
}

func unequalDevices(path *field.Path, c *corev1.Container) []Finding {
	var findings []Finding
	for _, name := range extendedResources(c.Resources) {
		request, asked := c.Resources.Requests[name]
		limit, limited := c.Resources.Limits[name]
		path, key := path.Child("resources", "limits").Key(string(name)), "limit of "+c.Name+" "+string(name)
		switch {
		case asked && !limited:
			findings = append(findings, required(path, fmt.Sprintf("container %s requests %s without a limit, which the API server refuses", c.Name, request.String())).withKey(key))
		case asked && request.Cmp(limit) != 0:
			findings = append(findings, invalid(path, limit.String(), fmt.Sprintf("container %s requests %s, and the API server refuses pods whose limit differs", c.Name, request.String())).withKey(key))
		}
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
