package policy

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	psaapi "k8s.io/pod-security-admission/api"
	psapolicy "k8s.io/pod-security-admission/policy"

	"warmpool.sh/webhook/config"
)

// Applies to: placeholder Deployments, in any namespace.
// Requires: nothing that Pod Security's level baseline forbids, such as privileged containers, namespaces of the host, hostPath
// and added capabilities. What restricted forbids beyond that is warned about where the pods ask for it, such as root, and not
// where they only leave out to rule it out.
// Why: a placeholder holds room and pulls images, and runs on every node of its pool with an image that follows a template. With
// such rights whoever may change the one or the other has the nodes. The shipped namespace enforces restricted; where a
// namespace enforces less, nothing else says so.
var placeholderPrivileges = &Rule{
	ID:       "placeholder-privileges",
	Summary:  "Its pods ask for nothing that can give them their node: what Pod Security's level baseline forbids. What restricted forbids beyond that is a warning.",
	Fix:      "Remove it: a placeholder holds room and pulls images, and needs no rights for that.",
	Subject:  PlaceholderDeployment,
	Action:   config.Deny,
	Severity: SeverityError,
	check:    checkPrivileges,
}

// podSecurityCheck is one of the library's checks in its newest version.
type podSecurityCheck struct {
	id       psapolicy.CheckID
	check    psapolicy.CheckPodFn
	stricter []psapolicy.CheckID // the checks of baseline that it includes
}

var baselineChecks, restrictedChecks = podSecurityChecks(psaapi.LevelBaseline), podSecurityChecks(psaapi.LevelRestricted)

func podSecurityChecks(level psaapi.Level) []podSecurityCheck {
	var checks []podSecurityCheck
	for _, c := range psapolicy.DefaultChecks() {
		if newest := c.Versions[len(c.Versions)-1]; c.Level == level {
			checks = append(checks, podSecurityCheck{c.ID, newest.CheckPod, newest.OverrideCheckIDs})
		}
	}
	return checks
}

func checkPrivileges(o *Object) {
	var failed []psapolicy.CheckID
	for _, c := range baselineChecks {
		if result := c.check(o.Meta, o.Spec); !result.Allowed {
			failed = append(failed, c.id)
			all := psapolicy.AggregateCheckResults([]psapolicy.CheckResult{result})
			o.forbidden(o.specPath(), "%s: Pod Security's level baseline forbids it, for it can give the node to whoever may change the placeholder or its image", clip(all.ForbiddenDetail())).
				withKey(all.ForbiddenDetail())
		}
	}
	spec := asRestricted(o.Spec)
	var results []psapolicy.CheckResult
	for _, c := range restrictedChecks {
		if !slices.ContainsFunc(c.stricter, func(id psapolicy.CheckID) bool { return slices.Contains(failed, id) }) {
			results = append(results, c.check(o.Meta, spec))
		}
	}
	if all := psapolicy.AggregateCheckResults(results); !all.Allowed {
		o.forbidden(o.specPath(), "Pod Security's level restricted forbids it: %s", clip(all.ForbiddenDetail())).
			withKey("restricted").milder(SeverityWarning).atMostWarn()
	}
}

// asRestricted is the spec with what the level restricted wants to be said, wherever nothing is.
func asRestricted(spec *corev1.PodSpec) *corev1.PodSpec {
	spec = spec.DeepCopy()
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	pod := spec.SecurityContext
	pod.RunAsNonRoot = cmp.Or(pod.RunAsNonRoot, new(true))
	pod.SeccompProfile = cmp.Or(pod.SeccompProfile, &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault})
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if containers[i].SecurityContext == nil {
				containers[i].SecurityContext = &corev1.SecurityContext{}
			}
			c := containers[i].SecurityContext
			c.AllowPrivilegeEscalation = cmp.Or(c.AllowPrivilegeEscalation, new(false))
			if c.Capabilities == nil {
				c.Capabilities = &corev1.Capabilities{}
			}
			if len(c.Capabilities.Drop) == 0 {
				c.Capabilities.Drop = []corev1.Capability{"ALL"}
			}
		}
	}
	return spec
}
