package policy

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/phrase"
)

// Applies to: Workspace pods.
// Requires: room for the effective request on some shape of the pool's nodes, which also list the extended resources that
// it asks for. A device that no node lists is not verified: its plugin may yet start.
// Why: else the pod stays Pending permanently, whatever the pool does.
var workspaceSize = &Rule{
	ID:       "workspace-size",
	Summary:  "The effective request is at most allocatable − DaemonSets on some node type of its pool; else it stays Pending permanently.",
	Fix:      "Ask for less, or add a larger instance type to the pool's NodePools.",
	Subject:  WorkspacePod,
	Action:   config.Warn,
	Severity: SeverityWarning,
	check: func(o *Object) {
		if o.Pool == nil || o.fit().Conflict {
			return
		}
		r := o.room()
		switch {
		case r.unknown != "":
			o.notVerified(o.specPath("containers"), "sizing: %s", r.unknown).atMostAudit()
		case len(r.fits) > 0:
			unlistedResources(o, r)
		case len(r.unseen) > 0:
			o.notVerified(o.specPath("containers"), "%s", r.unseenText()).atMostAudit()
		default:
			o.shortfalls(r)
		}
	},
}

// unlistedResources says which extended resources the pod asks for that none of the nodes with room lists. Accelerators
// of the pool appear once their device plugin has started, and nothing is said of them.
func unlistedResources(o *Object, r *roomFor) {
	var unlisted []string
	for i, shape := range r.fits {
		var unknown []string
		for _, name := range shape.Unknown(r.request) {
			if strings.Contains(string(name), "/") && !o.Pool.Offers([]string{string(name)}) {
				unknown = append(unknown, string(name))
			}
		}
		if i == 0 {
			unlisted = unknown
		}
		unlisted = slices.DeleteFunc(unlisted, func(name string) bool {
			_, too := slices.BinarySearch(unknown, name) // both are sorted
			return !too
		})
	}
	if len(unlisted) == 0 {
		return
	}
	names := phrase.Some(unlisted, 3) // a pod may ask for thousands
	o.notVerified(requestPath(o, corev1.ResourceName(unlisted[0])), "sizing: no node of pool %s lists %s (%s): where none ever does, the pod stays Pending", o.pool, names, clip(r.names(r.fits))).
		withKey("not verified: unlisted resources").atMostAudit().
		withFix("Start the device plugin of %s on the pool's nodes, or do not ask for it.", names)
}
