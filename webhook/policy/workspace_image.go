package policy

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/prepull"
)

// Applies to: Workspace pods, their container workspace.
// Requires: an image that a placeholder of the pool pre-pulls, and a pull policy that uses it.
// Why: another image is pulled when the Workspace starts: minutes on a warm node, as on a cold one.
var workspaceImage = &Rule{
	ID:       "workspace-image",
	Summary:  "A placeholder of its pool pre-pulls its image, and imagePullPolicy is not Always; else it starts with a pull on a warm node.",
	Fix:      "Give the Workspace the image of its template, list that template in the pool's templates, or set prePull: Allowed for the allowed images.",
	Subject:  WorkspacePod,
	Action:   config.Audit,
	Severity: SeverityInfo,
	check:    checkWorkspaceImage,
}

func checkWorkspaceImage(o *Object) {
	i := workspaceContainer(o.Spec)
	if o.Pool == nil || i < 0 {
		return
	}
	container := &o.Spec.Containers[i]
	path := func(name string) *field.Path { return o.specPath("containers").Index(i).Child(name) }
	if container.ImagePullPolicy == corev1.PullAlways {
		o.invalid(path("imagePullPolicy"), container.ImagePullPolicy, "each start waits for the registry, even where the image is already there").
			withFix("Set imagePullPolicy: IfNotPresent, or name a versioned tag, for which that is the default.")
	}
	pulled, placeholders := o.e.pulled[o.pool]
	switch deployments := o.e.facts.Deployments; {
	case !deployments.Known():
		o.notVerified(path("image"), "Deployments: %s", deployments.Reason()).atMostAudit()
	case !placeholders: // no node is warm
	case len(prepull.Missing([]string{container.Image}, pulled)) == 0:
	case len(pulled) == 0:
		o.invalid(path("image"), container.Image, "no placeholder of pool %s pre-pulls any image", o.pool).
			withFix("Give a placeholder of the pool an init container " + prepull.Name + ", as in the shipped manifests.")
	default:
		o.invalid(path("image"), container.Image, "no placeholder of pool %s pre-pulls it; they pull %s", o.pool, clipped(pulled)).
			orElsewhere(deployments, "no placeholder of pool %s among these files pre-pulls it; they pull %s", o.pool, clipped(pulled))
	}
}
