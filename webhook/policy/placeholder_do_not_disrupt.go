package policy

import (
	"time"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Applies to: placeholder Deployments of pools that Karpenter runs.
// Requires: the pod template's annotation karpenter.sh/do-not-disrupt: "true".
// Why: without it consolidation takes the node away, and Karpenter ignores every other spelling.
var placeholderDoNotDisrupt = &Rule{
	ID:       "placeholder-do-not-disrupt",
	Summary:  "The pod template carries the annotation karpenter.sh/do-not-disrupt: \"true\"; Karpenter ignores other spellings.",
	Fix:      "Set the pod template's annotation karpenter.sh/do-not-disrupt: \"true\".",
	Subject:  PlaceholderDeployment,
	Fills:    "the annotation",
	Action:   config.Deny,
	Severity: SeverityError,
	check:    checkDoNotDisrupt,
	mutate: func(o *Object, patch *placement.Patch) {
		if _, ok := o.Meta.Annotations[doNotDisrupt]; !ok && runByKarpenter(o) {
			o.annotate(patch, doNotDisrupt, "true")
		}
	},
}

const doNotDisrupt = "karpenter.sh/do-not-disrupt"

func runByKarpenter(o *Object) bool {
	return o.Pool == nil || o.Pool.Config.Autoscaler == config.Karpenter
}

func checkDoNotDisrupt(o *Object) {
	if !runByKarpenter(o) {
		return
	}
	path := o.path.Child("metadata", "annotations").Key(doNotDisrupt)
	switch value, ok := o.Meta.Annotations[doNotDisrupt]; {
	case value == "true":
	case !ok:
		o.required(path, "without this annotation Karpenter may remove the warm node")
	case isNotDisrupted(o):
		o.invalid(path, value, "protects the node for %s only, then Karpenter may remove it", value).atMostWarn().milder(SeverityWarning)
	default:
		o.invalid(path, value, "Karpenter ignores this value: only \"true\" or a positive duration counts")
	}
}

// isNotDisrupted tells whether Karpenter heeds the annotation of the placeholder's pods.
func isNotDisrupted(o *Object) bool {
	value := o.Meta.Annotations[doNotDisrupt]
	duration, err := time.ParseDuration(value)
	return value == "true" || err == nil && duration > 0
}
