package policy

import (
	"warmpool.sh/webhook/config"
)

// Applies to: placeholder Deployments, their pre-pull containers.
// Requires: a command, which must end by itself.
// Why: without one the image's own entry point starts: the notebook server, which never ends, so the pod never becomes Ready.
var placeholderPullCommand = &Rule{
	ID:       "placeholder-pull-command",
	Summary:  "Each pre-pull container has a command that ends; without one it would start the notebook server.",
	Fix:      "Set a command that ends at once, such as [\"sh\", \"-c\", \"echo pre-pulled\"], or [\"/bin/true\"] where the image has no shell.",
	Subject:  PlaceholderDeployment,
	Action:   config.Deny,
	Severity: SeverityError,
	check:    checkPullCommand,
}

func checkPullCommand(o *Object) []Finding {
	var findings []Finding
	for _, i := range o.prePullContainers() {
		if c := &o.Spec.InitContainers[i]; len(c.Command) == 0 {
			findings = append(findings, required(o.specPath("initContainers").Index(i).Child("command"),
				"container "+c.Name+" would start the image's own entry point, which does not end").withKey(c.Name))
		}
	}
	return findings
}
