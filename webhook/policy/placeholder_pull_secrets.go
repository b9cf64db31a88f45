package policy

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/prepull"
)

// Applies to: placeholder Deployments that pre-pull from a registry for which the pool's Workspaces have pull secrets.
// Requires: a pull secret of their own.
// Why: secrets stay in their namespace: without one the pool is warm and its image cold, and newer kubelets ask for
// credentials even where the image is already there.
var placeholderPullSecrets = &Rule{
	ID:       "placeholder-pull-secrets",
	Summary:  "It has a pull secret too, where the pool's Workspaces pull the same registry's images with one.",
	Fix:      "Create such a Secret in the placeholder's namespace and name it in imagePullSecrets of the pod template; warmpool copies no Secret.",
	Subject:  PlaceholderDeployment,
	Severity: SeverityWarning,
	audit:    auditPullSecrets,
}

func auditPullSecrets(a *Audit) {
	a.unread("Pods", a.facts.Pods)
	secrets := a.pullSecrets()
	for _, o := range a.Placeholders {
		if hasPullSecrets(a, o) {
			continue
		}
		reported := map[string]bool{}
		for _, image := range prepull.Present(o.Spec) {
			registry := registryOf(image)
			used := secrets[poolRegistry{o.pool, registry}]
			if registry != "" && len(used) > 0 && !reported[registry] {
				reported[registry] = true
				o.required(o.specPath("imagePullSecrets"), "Workspaces of pool %s pull from %s with secret %s; without one %s may not be pulled",
					o.pool, registry, clipped(slices.Sorted(maps.Keys(used))), image)
			}
		}
	}
}

// hasPullSecrets tells whether a placeholder's pods have pull secrets, by their template or by their ServiceAccount.
func hasPullSecrets(a *Audit, o *Object) bool {
	return len(o.Spec.ImagePullSecrets) > 0 ||
		slices.ContainsFunc(a.Pods(o), func(pod *corev1.Pod) bool { return len(pod.Spec.ImagePullSecrets) > 0 })
}

type poolRegistry struct{ pool, registry string }

// pullSecrets are the secrets, as namespace/name, that Workspaces have for their image, by its registry.
func (a *Audit) pullSecrets() map[poolRegistry]map[string]bool {
	secrets := map[poolRegistry]map[string]bool{}
	for _, o := range a.Workspaces {
		i := workspaceContainer(o.Spec)
		if i < 0 || o.Pool == nil || len(o.Spec.ImagePullSecrets) == 0 {
			continue
		}
		key := poolRegistry{o.pool, registryOf(o.Spec.Containers[i].Image)}
		if secrets[key] == nil {
			secrets[key] = map[string]bool{}
		}
		for _, secret := range o.Spec.ImagePullSecrets {
			secrets[key][o.Namespace+"/"+secret.Name] = true
		}
	}
	return secrets
}
