package policy

import (
	"slices"
	"strings"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/prepull"
)

// Applies to: placeholder Deployments, their pre-pull containers, and other init containers with an image of the pool's
// templates.
// Requires: a command, which must end by itself.
// Why: without one the image's own entry point starts: the notebook server, which never ends, so the pod never becomes
// Ready. One that sleeps or loops is as bad. A sidecar (restartPolicy Always) holds nothing up: it may go on.
var placeholderPullCommand = &Rule{
	ID:       "placeholder-pull-command",
	Summary:  "Each pre-pull container has a command that ends; without one it would start the notebook server.",
	Fix:      "Set a command that ends at once, such as [\"sh\", \"-c\", \"echo pre-pulled\"], or [\"/bin/true\"] where the image has no shell.",
	Subject:  PlaceholderDeployment,
	Action:   config.Deny,
	Severity: SeverityError,
	check:    checkPullCommand,
}

func checkPullCommand(o *Object) {
	named := o.prePullContainers()
	for i := range o.Spec.InitContainers {
		c := &o.Spec.InitContainers[i]
		isNamed := slices.Contains(named, i)
		if !isNamed && !o.isTemplateImage(c.Image) {
			continue
		}
		path := o.specPath("initContainers").Index(i).Child("command")
		if what := prepull.Endless(c); what != "" && !isSidecar(c) {
			o.invalid(path, clip(strings.Join(slices.Concat(c.Command, c.Args), " ")), "container %s does not end (%s): the pod never becomes Ready", c.Name, what).
				withKey(c.Name)
		} else if len(c.Command) == 0 && isNamed {
			o.required(path, "container %s would start the image's own entry point, which does not end", c.Name).withKey(c.Name)
		}
	}
}
