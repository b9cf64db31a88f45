package policy

import (
	"fmt"
	"slices"
	"strings"

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

func checkWorkspaceImage(o *Object) []Finding {
	i := workspaceContainer(o.Spec)
	if o.Pool == nil || i < 0 {
		return nil
	}
	container := &o.Spec.Containers[i]
	path := func(name string) *field.Path { return o.specPath("containers").Index(i).Child(name) }
	var findings []Finding
	if container.ImagePullPolicy == corev1.PullAlways {
		findings = append(findings, invalid(path("imagePullPolicy"), container.ImagePullPolicy,
			"each start waits for the registry, even where the image is already there").withFix("Set imagePullPolicy: IfNotPresent, or name a versioned tag, for which that is the default."))
	}
	if !o.facts.Deployments.Known() {
		return append(findings, notVerified(path("image"), "Deployments: "+o.facts.Deployments.Reason()).atMostAudit())
	}
	pulled, placeholders := o.pulled[o.Pool.Config.Name]
	switch {
	case !placeholders: // no node is warm
	case len(prepull.Missing([]string{container.Image}, pulled)) == 0:
	case len(pulled) == 0:
		findings = append(findings, invalid(path("image"), container.Image, fmt.Sprintf("no placeholder of pool %s pre-pulls any image", o.Pool.Config.Name)).
			withFix("Give a placeholder of the pool an init container "+prepull.Name+", as in the shipped manifests."))
	default:
		f := invalid(path("image"), container.Image,
			fmt.Sprintf("no placeholder of pool %s pre-pulls it; they pull %s", o.Pool.Config.Name, clip(strings.Join(pulled, ", "))))
		findings = append(findings, orElsewhere(f, o.facts.Deployments, fmt.Sprintf("no placeholder of pool %s among these files pre-pulls it; they pull %s", o.Pool.Config.Name, clip(strings.Join(pulled, ", ")))))
	}
	return findings
}

// WorkspaceContainer is the container that the user of a Workspace pod works in: workspace, or the first where another
// operator names it otherwise. It is nil for a pod without containers.
func WorkspaceContainer(spec *corev1.PodSpec) *corev1.Container {
	if i := workspaceContainer(spec); i >= 0 {
		return &spec.Containers[i]
	}
	return nil
}

// workspaceContainer is its index, or -1.
func workspaceContainer(spec *corev1.PodSpec) int {
	i := slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == "workspace" })
	if i < 0 && len(spec.Containers) > 0 {
		return 0
	}
	return i
}

// pulledImages are the images that the placeholders of each pool bring to their nodes, sorted, by the pool's name; pools
// without a placeholder are not there.
func (e *Evaluator) pulledImages() map[string][]string {
	pulled := map[string][]string{}
	for _, d := range e.facts.Deployments.All() {
		if !e.IsPlaceholder(d) {
			continue
		}
		if pool := e.pools.ForPlaceholder(d).Pool; pool != nil {
			pulled[pool.Config.Name] = append(pulled[pool.Config.Name], prepull.Present(&d.Spec.Template.Spec)...)
		}
	}
	for pool, images := range pulled {
		slices.Sort(images)
		pulled[pool] = slices.Compact(images)
	}
	return pulled
}
