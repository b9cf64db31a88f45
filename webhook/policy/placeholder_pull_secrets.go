package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/prepull"
)

// Applies to: placeholder Deployments that pre-pull from a registry for which the pool's Workspaces have pull secrets.
// Requires: a pull secret of their own.
// Why: secrets stay in their namespace: without one the pool is warm and its image cold, and newer kubelets ask for
// credentials even where the image is already there.
var placeholderPullSecrets = &Rule{
	ID:        "placeholder-pull-secrets",
	Summary:   "It has a pull secret too, where the pool's Workspaces pull the same registry's images with one.",
	Fix:       "Create such a Secret in the placeholder's namespace and name it in imagePullSecrets of the pod template; warmpool copies no Secret.",
	Subject:   PlaceholderDeployment,
	Action:    config.Audit,
	Severity:  SeverityWarning,
	AuditOnly: true,
	around:    checkPullSecrets,
}

func checkPullSecrets(a *Audit) []Finding {
	findings := unread("Pods", a.facts.Pods)
	secrets := a.pullSecrets()
	for _, o := range a.placeholders {
		if hasPullSecrets(a, o) {
			continue
		}
		var told []string
		for _, image := range prepull.Present(o.Spec) {
			registry := registryOf(image)
			used := secrets[poolRegistry{o.PoolName(), registry}]
			if registry == "" || len(used) == 0 || slices.Contains(told, registry) {
				continue
			}
			told = append(told, registry)
			f := required(o.specPath("imagePullSecrets"), fmt.Sprintf("Workspaces of pool %s pull from %s with secret %s; without one %s may not be pulled",
				o.PoolName(), registry, clip(strings.Join(slices.Sorted(maps.Keys(used)), ", ")), image))
			findings = append(findings, f.about("Deployment", o.Namespace, o.Name, o.PoolName()))
		}
	}
	return findings
}

// hasPullSecrets tells whether a placeholder's pods have pull secrets, by their template or by their ServiceAccount.
func hasPullSecrets(a *Audit, o *Object) bool {
	if len(o.Spec.ImagePullSecrets) > 0 {
		return true
	}
	for _, pod := range a.pods(o) {
		if len(pod.Spec.ImagePullSecrets) > 0 {
			return true
		}
	}
	return false
}

type poolRegistry struct{ pool, registry string }

// pullSecrets are the secrets, as namespace/name, that Workspaces have for their image, by its registry.
func (a *Audit) pullSecrets() map[poolRegistry]map[string]bool {
	secrets := map[poolRegistry]map[string]bool{}
	for _, o := range a.workspaces {
		i := workspaceContainer(o.Spec)
		if i < 0 || o.Pool == nil || len(o.Spec.ImagePullSecrets) == 0 {
			continue
		}
		key := poolRegistry{o.PoolName(), registryOf(o.Spec.Containers[i].Image)}
		if secrets[key] == nil {
			secrets[key] = map[string]bool{}
		}
		for _, secret := range o.Spec.ImagePullSecrets {
			secrets[key][o.Namespace+"/"+secret.Name] = true
		}
	}
	return secrets
}

// registryOf is the registry of an image; empty for what is no image reference.
func registryOf(image string) string {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return ""
	}
	return reference.Domain(named)
}
