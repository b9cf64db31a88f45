package policy

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
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

func checkAccelerator(o *Object) {
	for path, c := range o.containers() {
		unequalDevices(o, path, c)
	}
	if o.Pool != nil && len(o.Pool.Config.Accelerators) > 0 && !holdsAccelerator(o) {
		o.required(o.specPath("containers").Index(0).Child("resources", "limits"),
			"pool %s has accelerators (%s) and the placeholder holds none: a Workspace would find no free one on its node",
			o.pool, strings.Join(o.Pool.Config.Accelerators, ", ")).withKey("none held")
	}
}

func holdsAccelerator(o *Object) bool {
	holds := func(c corev1.Container) bool {
		return slices.ContainsFunc(extendedResources(&c.Resources), func(name corev1.ResourceName) bool {
			request, limit := c.Resources.Requests[name], c.Resources.Limits[name]
			return o.Pool.Offers([]string{string(name)}) && (request.Sign() > 0 || limit.Sign() > 0)
		})
	}
	return slices.ContainsFunc(o.Spec.Containers, holds) ||
		slices.ContainsFunc(o.Spec.InitContainers, func(c corev1.Container) bool { return isSidecar(&c) && holds(c) })
}

func unequalDevices(o *Object, path *field.Path, c *corev1.Container) {
	for _, name := range extendedResources(&c.Resources) {
		request, asked := c.Resources.Requests[name]
		limit, limited := c.Resources.Limits[name]
		path, key := path.Child("resources", "limits").Key(string(name)), "limit of "+c.Name+" "+string(name)
		switch {
		case asked && !limited:
			o.required(path, "container %s requests %s without a limit, which the API server refuses", c.Name, request.String()).withKey(key)
		case asked && request.Cmp(limit) != 0:
			o.invalid(path, limit.String(), "container %s requests %s, and the API server refuses pods whose limit differs", c.Name, request.String()).withKey(key)
		}
	}
}
