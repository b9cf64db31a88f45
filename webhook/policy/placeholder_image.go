package policy

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/prepull"
)

// Applies to: placeholder Deployments of pools with templates, their init containers pull-workspace-image, -2, -3….
// Requires: one for each distinct image of the pool's WorkspaceTemplates.
// Why: a warm node with yesterday's image is a cold node: the Workspace pulls gigabytes on it.
var placeholderImage = &Rule{
	ID:       "placeholder-image",
	Summary:  "Pre-pulls the images of the pool's WorkspaceTemplates, one init container for each.",
	Fix:      "Leave the images to warmpool, or opt out with the annotation " + prepull.OptOut + `: "false".`,
	Subject:  PlaceholderDeployment,
	Fills:    "images of pull-workspace-image containers, added and removed with the templates",
	Action:   config.Warn,
	Severity: SeverityWarning,
	check:    checkImage,
	mutate:   fillImage,
}

// PrePull is what the pool's templates say about the images of a placeholder. ok is false where they say nothing: no
// pool, no templates of the pool, or templates that could not be read.
func (o *Object) PrePull() (sources []prepull.Source, ok bool) {
	if o.Deployment == nil || o.Pool == nil || len(o.Pool.Config.Templates) == 0 || !o.facts.Templates.Known() {
		return nil, false
	}
	return prepull.Sources(o.Pool.Config, &o.config.Workspaces, o.facts.Templates), true
}

// ImagesHeld tells why the images of a placeholder are left as they are for now; empty when they are not.
func ImagesHeld(d *appsv1.Deployment) string {
	switch {
	case d.Annotations[prepull.OptOut] == "false":
		return "it opted out by the annotation " + prepull.OptOut
	case d.Spec.Paused:
		return "it is paused"
	default:
		return ""
	}
}

func fillImage(o *Object, patch *placement.Patch) {
	sources, ok := o.PrePull()
	if !ok || o.byWarmpool || ImagesHeld(o.Deployment) != "" {
		return
	}
	pulled := prepull.Pulled(o.Spec.InitContainers)
	images := prepull.Images(sources, prepull.RecordOf(o.Deployment.Annotations), pulled)
	if o.before != nil {
		// What the controller wrote stands: it may know a template that this replica has not heard of yet, and an update
		// for another reason starts no rollout.
		before := prepull.Pulled(o.before.Spec.Template.Spec.InitContainers)
		if prepull.RecordOf(o.before.Annotations).Covers(before) || sameImages(before, pulled) {
			images = before
		}
	}
	changes := prepull.Changes(o.Spec.InitContainers, images)
	base := o.specPointer() + "/initContainers"
	for _, c := range changes {
		path := o.specPath("initContainers").Index(c.Index)
		switch {
		case c.Gone:
			patch.Remove(placement.Index(base, c.Index))
			o.replace(invalid(path.Child("name"), c.Container.Name, c.Container.Name+" is removed: no template of the pool has its image"))
		case c.Added:
			patch.Add(base+"/-", c.Container)
		default:
			patch.Add(placement.Index(base, c.Index)+"/image", c.Container.Image)
			o.replace(invalid(path.Child("image"), o.Spec.InitContainers[c.Index].Image,
				fmt.Sprintf("%s gets the WorkspaceTemplate's image: %s", c.Container.Name, c.Container.Image)))
		}
	}
	if len(changes) > 0 {
		o.Spec.InitContainers = prepull.Apply(o.Spec.InitContainers, changes)
	}
}

func checkImage(o *Object) []Finding {
	if o.Pool == nil || len(o.Pool.Config.Templates) == 0 {
		return nil
	}
	path := o.specPath("initContainers")
	sources, ok := o.PrePull()
	if !ok {
		return []Finding{notVerified(path, "images: WorkspaceTemplates: "+o.facts.Templates.Reason())}
	}
	var findings []Finding
	for _, s := range sources {
		if s.Problem != "" {
			findings = append(findings, invalid(path, s.Template.Namespace+"/"+s.Template.Name, "the last image is kept: "+s.Problem).
				withKey(s.Problem).withFix("Mend the WorkspaceTemplate, or take it out of the pool's templates.").atMostWarn())
		}
	}
	if !prepull.HasFirst(o.Spec.InitContainers) {
		return append(findings, invalid(path, "", "no init container is called "+prepull.Name+": nothing is pre-pulled, and warmpool adds none by itself").
			withKey("absent").withFix("Add an init container "+prepull.Name+" with a command that ends, as in the shipped manifests."))
	}
	pulled := prepull.Pulled(o.Spec.InitContainers)
	images := prepull.Images(sources, prepull.RecordOf(o.Deployment.Annotations), pulled)
	for _, f := range wrongImages(o, prepull.Changes(o.Spec.InitContainers, images)) {
		if held := ImagesHeld(o.Deployment); held != "" {
			f.Error.Detail += "; left as it is, because " + held
			f = f.atMostAudit()
		}
		findings = append(findings, f)
	}
	return findings
}

func wrongImages(o *Object, changes []prepull.Change) []Finding {
	var findings []Finding
	for _, c := range changes {
		path := o.specPath("initContainers").Index(c.Index)
		name := c.Container.Name
		var f Finding
		switch {
		case c.Gone:
			f = invalid(path.Child("name"), name, name+" pulls an image that no template of the pool has")
		case c.Added:
			f = invalid(o.specPath("initContainers"), name, fmt.Sprintf("no init container pulls %s, which a template of the pool has", c.Container.Image))
		default:
			f = invalid(path.Child("image"), o.Spec.InitContainers[c.Index].Image, fmt.Sprintf("%s does not pull %s, the image of the pool's template", name, c.Container.Image))
		}
		findings = append(findings, f.withKey(name))
	}
	return findings
}

func sameImages(a, b []string) bool { return strings.Join(a, ",") == strings.Join(b, ",") }
