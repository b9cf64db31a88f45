package policy

import (
	"cmp"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/sizing"
)

// Applies to: placeholder Deployments of pools with templates.
// Requires: Coexist: every template's default Workspace fits beside the placeholder. Exclusive: not even the smallest does.
// Always: one that takes the placeholder's place fits.
// Why: in Coexist mode a Workspace that does not fit beside evicts the placeholder; in Exclusive mode one that does
// leaves a node that is neither warm nor used up.
var placeholderSizingMode = &Rule{
	ID:       "placeholder-sizing-mode",
	Summary:  "Coexist: the default Workspace of every template fits beside the placeholder. Exclusive: not even the smallest does. Always: it fits where the placeholder was.",
	Fix:      "Change the placeholder's request, or the pool's sizing.mode.",
	Subject:  PlaceholderDeployment,
	Action:   config.Warn,
	Severity: SeverityWarning,
	check:    checkSizingMode,
}

func checkSizingMode(o *Object) {
	if o.Pool == nil || len(o.Pool.Config.Templates) == 0 || o.fit().Conflict {
		return
	}
	path, templates := o.specPath("containers"), o.e.facts.Templates
	if !templates.Known() {
		o.notVerified(path, "sizing mode: WorkspaceTemplates: %s", templates.Reason())
		return
	}
	r := o.room()
	for _, ref := range o.Pool.Config.Templates {
		key := ref.String()
		template := templates.Get(key)
		if template == nil {
			o.notVerified(path, "sizing mode: WorkspaceTemplate %s %s", key, cmp.Or(templates.Malformed(key), templates.Missing()))
			continue
		}
		for _, shape := range r.fits {
			if message := sizing.ModeFault(o.Pool.Config.Sizing.Mode, sizing.TemplateOf(template), shape, r.request); message != "" {
				o.invalid(path, sizing.Quantities(r.request), "%s", message).withKey(key)
				break
			}
		}
	}
}
