// Package admissionpolicy holds the shipped policy for programs: manifests and "warmpool export cel" have one text.
package admissionpolicy

import _ "embed" // policy.yaml

// YAML is the policy. It lacks the labels that tell a Workspace pod.
//
//go:embed policy.yaml
var YAML string
