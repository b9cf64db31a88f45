package policy

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/config"
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
	check: func(o *Object) []Finding {
		if o.Pool == nil || o.fit().Conflict {
			return nil
		}
		r := o.room()
		switch {
		case r.unknown != "":
			return []Finding{notVerified(o.specPath("containers"), "sizing: "+r.unknown).atMostAudit()}
		case len(r.fits) > 0:
			return unlistedResources(o, r)
		case len(r.unseen) > 0:
			return []Finding{notVerified(o.specPath("containers"), unseenText(r)).atMostAudit()}
		default:
			return shortfallFindings(o, r)
		}
	},
}

// unlistedResources says which extended resources the pod asks for that none of the nodes with room lists. Accelerators
// of the pool appear once their device plugin has started, and nothing is said of them.
func unlistedResources(o *Object, r *roomFor) []Finding {
	var unlisted []corev1.ResourceName
	for i, shape := range r.fits {
		unknown := slices.DeleteFunc(shape.Unknown(r.request), func(name corev1.ResourceName) bool {
			return !strings.Contains(string(name), "/") || o.Pool.Offers([]string{string(name)})
		})
		if i == 0 {
			unlisted = unknown
		}
		unlisted = slices.DeleteFunc(unlisted, func(name corev1.ResourceName) bool {
			_, too := slices.BinarySearch(unknown, name) // both are sorted
			return !too
		})
	}
	if len(unlisted) == 0 {
		return nil
	}
	var names []string
	for _, name := range unlisted[:min(len(unlisted), mostNamed)] {
		names = append(names, string(name))
	}
	text := strings.Join(names, ", ")
	if more := len(unlisted) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	why := fmt.Sprintf("sizing: no node of pool %s lists %s (%s): where none ever does, the pod stays Pending", o.Pool.Config.Name, text, clip(r.names(r.fits)))
	return []Finding{notVerified(requestPath(o, unlisted[0]), why).withKey("not verified: unlisted resources").
		withFix("Start the device plugin of " + text + " on the pool's nodes, or do not ask for it.").atMostAudit()}
}

// mostNamed bounds a list of what a pod asks for, of which it may ask for thousands.
const mostNamed = 3
