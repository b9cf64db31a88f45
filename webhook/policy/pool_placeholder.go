package policy

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
)

// Applies to: the pools of the configuration.
// Requires: a placeholder Deployment that belongs to the pool.
// Why: a pool without one is placement without warmth: its Workspaces wait for a node, and for their image.
var poolPlaceholder = &Rule{
	ID:       "pool-placeholder",
	Summary:  "Some placeholder Deployment belongs to the pool; else no node of it is kept warm.",
	Fix:      "Add a placeholder Deployment with the label warmpool.sh/pool: NAME (manifests/base/placeholders has examples) and its CPA; for a pool that is meant to have none, set pool-placeholder: Off in its rules.",
	Subject:  WarmPool,
	Severity: SeverityWarning,
	audit: func(a *Audit) {
		if a.unread("Deployments", a.facts.Deployments) {
			return
		}
		for i, pool := range a.pools.All() {
			if name := pool.Config.Name; len(a.Of(name)) == 0 {
				a.about(config.Kind, "", "", name).
					invalid(field.NewPath("pools").Index(i).Child("name"), name, "no placeholder Deployment belongs to this pool: none of its nodes is kept warm").
					orElsewhere(a.facts.Deployments, "no placeholder Deployment among these files belongs to this pool: without one none of its nodes is kept warm")
			}
		}
	},
}
