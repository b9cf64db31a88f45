package policy

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/prepull"
)

// Applies to: placeholder Deployments of pools with templates.
// Requires: each distinct image of the pool's WorkspaceTemplates in an init container pull-workspace-image, -2, -3…, which
// warmpool keeps current, or in another container or an image volume, which it leaves alone.
// Why: a warm node with yesterday's image is a cold node: the Workspace pulls gigabytes on it.
var placeholderImage = &Rule{
	ID:       "placeholder-image",
	Summary:  "Pre-pulls the images of the pool's WorkspaceTemplates: in one init container for each, which warmpool keeps current, or in another container or an image volume.",
	Fix:      "Name the templates' images in the placeholder's manifest, or leave image out there and let warmpool write it; or opt out with the Deployment's annotation " + prepull.OptOut + `: "false".`,
	Subject:  PlaceholderDeployment,
	Fills:    "images of pull-workspace-image containers, added and removed with the templates",
	Action:   config.Warn,
	Severity: SeverityWarning,
	check:    checkImage,
	mutate:   fillImage,
}

// PrePull is what the pool's templates say about the images of a placeholder, not to be changed. ok is false where they say
// nothing: no pool, no templates of the pool, or templates that could not be read.
func (o *Object) PrePull() (sources []prepull.Source, ok bool) {
	if o.Deployment == nil || o.Pool == nil || len(o.Pool.Config.Templates) == 0 || !o.facts.Templates.Known() {
		return nil, false
	}
	return o.sources[o.Pool.Config.Name], true
}

// SyncsImages tells whether the images of a placeholder are warmpool's to keep current: not where the rule is off, the
// placeholder exempt from it, or opted out.
func (e *Evaluator) SyncsImages(o *Object) bool {
	action := e.actionsOf(o)[slices.Index(table, placeholderImage)]
	return e.applies(placeholderImage, action, o) && o.Deployment.Annotations[prepull.OptOut] != "false"
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
	if !ok || ImagesHeld(o.Deployment) != "" {
		return
	}
	images, synced := imagesFor(o, sources)
	changes := prepull.Changes(o.Spec.InitContainers, images)
	if len(changes) == 0 {
		return
	}
	base := o.specPointer() + "/initContainers"
	for _, c := range changes {
		switch {
		case c.Gone:
			patch.Remove(placement.Index(base, c.Index))
		case c.Added:
			patch.Add(base+"/-", c.Container)
			continue // nothing of the user's is replaced
		default:
			patch.Add(placement.Index(base, c.Index)+"/image", c.Container.Image)
		}
		o.replace(replacedImage(o, c, synced))
	}
	o.Spec.InitContainers = prepull.Apply(o.Spec.InitContainers, changes)
	o.Accelerators = o.pools.Accelerators(o.Spec) // those that went may have asked for some
}

// imagesFor are the images that a placeholder is to pull: those of the templates, or those synced before the update. None:
// they stay as they are.
func imagesFor(o *Object, sources []prepull.Source) (images []string, synced bool) {
	if o.before != nil {
		init := o.before.Spec.Template.Spec.InitContainers
		if prepull.Same(init, o.Spec.InitContainers) {
			return nil, false // an update for another reason starts no rollout
		}
		// What the controller wrote stands: it may know a template that this replica has not heard of yet.
		before, record := prepull.Pulled(init), prepull.RecordOf(o.before.Annotations)
		if record.Covers(before) && !slices.ContainsFunc(record, o.ofAnotherPool) {
			return before, true
		}
	}
	return prepull.Images(sources, prepull.RecordOf(o.Deployment.Annotations), prepull.Pulled(o.Spec.InitContainers)), false
}

// ofAnotherPool tells that a template is none of the pool's, which the placeholder has moved to since.
func (o *Object) ofAnotherPool(s prepull.Source) bool {
	return !slices.Contains(o.Pool.Config.Templates, s.Template)
}

func replacedImage(o *Object, c prepull.Change, synced bool) Finding {
	path := o.specPath("initContainers").Index(c.Index)
	name, image := c.Container.Name, c.Container.Image
	switch {
	case c.Gone && synced:
		return invalid(path.Child("name"), name, name+" is removed: it was not there when warmpool synced the images")
	case c.Gone:
		return invalid(path.Child("name"), name, name+" is removed: the pool's templates have no image for it")
	case synced:
		return invalid(path.Child("image"), o.Spec.InitContainers[c.Index].Image, name+" keeps "+image+", which warmpool synced")
	default:
		return invalid(path.Child("image"), o.Spec.InitContainers[c.Index].Image, name+" now pulls "+image+", as the pool's templates say")
	}
}

func checkImage(o *Object) []Finding {
	if o.Pool == nil || len(o.Pool.Config.Templates) == 0 {
		return nil
	}
	findings := imageFindings(o)
	if held := ImagesHeld(o.Deployment); held != "" {
		for i := range findings {
			f := findings[i].atMostAudit()
			f.Error.Detail += "; left as it is, because " + held
			f.Fix = cmp.Or(f.Fix, "To have the images synced, remove the annotation "+prepull.OptOut+" or resume the rollout.")
			findings[i] = f
		}
	}
	return findings
}

func imageFindings(o *Object) []Finding {
	sources, ok := o.PrePull()
	if !ok {
		return []Finding{notVerified(o.specPath("initContainers"), "images: WorkspaceTemplates: "+o.facts.Templates.Reason())}
	}
	var findings []Finding
	for _, s := range sources {
		if s.Problem != "" {
			findings = append(findings, unknownImage(o, s))
		}
	}
	images := prepull.Images(sources, prepull.RecordOf(o.Deployment.Annotations), prepull.Pulled(o.Spec.InitContainers))
	if !prepull.HasFirst(o.Spec.InitContainers) {
		return append(findings, elsewhereFindings(o, images)...)
	}
	for _, c := range prepull.Changes(o.Spec.InitContainers, images) {
		if !c.Added || len(prepull.Missing([]string{c.Container.Image}, prepull.Present(o.Spec))) > 0 {
			findings = append(findings, wrongImage(o, c))
		}
	}
	return findings
}

// unknownImage is the finding about an image that cannot be pre-pulled as things are.
func unknownImage(o *Object, s prepull.Source) Finding {
	path := o.specPath("initContainers")
	if s.ByController {
		return notVerified(path, s.Problem).withKey(s.Problem).withFix("Correct the image name or the Workspace controller's flag; until then the placeholder keeps the last image.")
	}
	if s.Beyond {
		return invalid(path, s.Template.String(), s.Problem).withKey(s.Problem).atMostWarn().
			withFix("List fewer allowedImages, in the order of their use, or give the template a pool of its own.")
	}
	return invalid(path, s.Template.String(), s.Problem).withKey(s.Problem).atMostWarn().
		withFix("Correct the WorkspaceTemplate or the configuration; until then the placeholder keeps the last image.")
}

func wrongImage(o *Object, c prepull.Change) Finding {
	path := o.specPath("initContainers")
	name, image := c.Container.Name, c.Container.Image
	var f Finding
	switch {
	case c.Gone:
		f = invalid(path.Index(c.Index).Child("name"), name, name+" is not needed for any image of the pool's templates")
	case c.Added:
		f = invalid(path, name, name+" is missing: it would pull "+image+", which a template of the pool has")
	default:
		f = invalid(path.Index(c.Index).Child("image"), o.Spec.InitContainers[c.Index].Image, name+" does not pull "+image+", which a template of the pool has")
	}
	if ImagesHeld(o.Deployment) == "" { // else checkImage says what to do
		f = f.withFix(imageFix(c))
	}
	return f.withKey(name)
}

// imageFix is for a manifest: what is wrong in a cluster, warmpool writes itself.
func imageFix(c prepull.Change) string {
	if c.Gone {
		return fmt.Sprintf("Remove %s from the placeholder's manifest, or list the template whose image it pulls in the pool's templates.", c.Container.Name)
	}
	return fmt.Sprintf("Name %s in the placeholder's manifest, or leave image out there: warmpool writes it when the manifest is applied. To keep another image, opt out with the Deployment's annotation %s: \"false\".", c.Container.Image, prepull.OptOut)
}
