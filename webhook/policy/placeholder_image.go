package policy

import (
	"cmp"
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

// SyncsImages tells whether the images of a placeholder are warmpool's to keep current: not where the rule is off, the
// placeholder exempt from it, or opted out.
func (e *Evaluator) SyncsImages(o *Object) bool {
	action := e.actionsOf(o)[slices.Index(table, placeholderImage)]
	return e.applies(placeholderImage, action, o) && o.Deployment.Annotations[prepull.OptOut] != "false"
}

// ImagesHeld says why the images of a placeholder are left as they are for now; empty when they are not.
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
		replacedImage(o, c, synced)
	}
	o.Spec.InitContainers = prepull.Apply(o.Spec.InitContainers, changes)
	o.Accelerators = o.e.pools.Accelerators(o.Spec) // those that went may have asked for some
}

// imagesFor are the images that a placeholder is to pull: those of the templates, or those synced before the update. None:
// they stay as they are.
func imagesFor(o *Object, sources []prepull.Source) (images []string, synced bool) {
	if o.before != nil {
		init := o.before.Spec.Template.Spec.InitContainers
		if prepull.Same(init, o.Spec.InitContainers) {
			return nil, false // an update for another reason starts no rollout
		}
		// What the controller wrote stands: it may know a template that this replica has not heard of yet. Of another pool
		// are the templates that the placeholder had before it moved.
		before, record := prepull.Pulled(init), prepull.RecordOf(o.before.Annotations)
		ofAnotherPool := func(s prepull.Source) bool { return !slices.Contains(o.Pool.Config.Templates, s.Template) }
		if record.Covers(before) && !slices.ContainsFunc(record, ofAnotherPool) {
			return before, true
		}
	}
	return templateImages(o, sources), false
}

func templateImages(o *Object, sources []prepull.Source) []string {
	return prepull.Images(sources, prepull.RecordOf(o.Deployment.Annotations), prepull.Pulled(o.Spec.InitContainers))
}

func replacedImage(o *Object, c prepull.Change, synced bool) {
	path := o.specPath("initContainers").Index(c.Index)
	name, image, now := c.Container.Name, c.Container.Image, o.Spec.InitContainers[c.Index].Image
	switch {
	case c.Gone && synced:
		o.replace(path.Child("name"), name, "%s is removed: it was not there when warmpool synced the images", name)
	case c.Gone:
		o.replace(path.Child("name"), name, "%s is removed: the pool's templates have no image for it", name)
	case synced:
		o.replace(path.Child("image"), now, "%s keeps %s, which warmpool synced", name, image)
	default:
		o.replace(path.Child("image"), now, "%s now pulls %s, as the pool's templates say", name, image)
	}
}

func checkImage(o *Object) {
	if o.Pool == nil || len(o.Pool.Config.Templates) == 0 {
		return
	}
	before := len(o.findings)
	judgeImages(o)
	if held := ImagesHeld(o.Deployment); held != "" {
		for _, f := range o.findings[before:] {
			f.atMostAudit().Error.Detail += "; left as it is, because " + held
			f.Fix = cmp.Or(f.Fix, "To have the images synced, remove the annotation "+prepull.OptOut+" or resume the rollout.")
		}
	}
}

func judgeImages(o *Object) {
	sources, ok := o.PrePull()
	if !ok {
		o.notVerified(o.specPath("initContainers"), "images: WorkspaceTemplates: %s", o.e.facts.Templates.Reason())
		return
	}
	for _, s := range sources {
		if s.Problem != "" {
			unknownImage(o, s)
		}
	}
	images := templateImages(o, sources)
	if !prepull.HasFirst(o.Spec.InitContainers) {
		judgeElsewhere(o, images)
		return
	}
	for _, c := range prepull.Changes(o.Spec.InitContainers, images) {
		if !c.Added || len(prepull.Missing([]string{c.Container.Image}, prepull.Present(o.Spec))) > 0 {
			wrongImage(o, c)
		}
	}
}

// unknownImage is about an image that cannot be pre-pulled as things are.
func unknownImage(o *Object, s prepull.Source) {
	path := o.specPath("initContainers")
	switch {
	case s.ByController:
		o.notVerified(path, "%s", s.Problem).withKey(s.Problem).
			withFix("Correct the image name or the Workspace controller's flag; until then the placeholder keeps the last image.")
	case s.Beyond:
		o.invalid(path, s.Template.String(), "%s", s.Problem).withKey(s.Problem).atMostWarn().
			withFix("List fewer allowedImages, in the order of their use, or give the template a pool of its own.")
	default:
		o.invalid(path, s.Template.String(), "%s", s.Problem).withKey(s.Problem).atMostWarn().
			withFix("Correct the WorkspaceTemplate or the configuration; until then the placeholder keeps the last image.")
	}
}

func wrongImage(o *Object, c prepull.Change) {
	path := o.specPath("initContainers")
	name, image := c.Container.Name, c.Container.Image
	var f *Finding
	switch {
	case c.Gone:
		f = o.invalid(path.Index(c.Index).Child("name"), name, "%s is not needed for any image of the pool's templates", name)
	case c.Added:
		f = o.invalid(path, name, "%s is missing: it would pull %s, which a template of the pool has", name, image)
	default:
		f = o.invalid(path.Index(c.Index).Child("image"), o.Spec.InitContainers[c.Index].Image, "%s does not pull %s, which a template of the pool has", name, image)
	}
	f.withKey(name)
	switch { // for a manifest: what is wrong in a cluster, warmpool writes itself
	case ImagesHeld(o.Deployment) != "": // checkImage says what to do
	case c.Gone:
		f.withFix("Remove %s from the placeholder's manifest, or list the template whose image it pulls in the pool's templates.", name)
	default:
		f.withFix("Name %s in the placeholder's manifest, or leave image out there: warmpool writes it when the manifest is applied. To keep another image, opt out with the Deployment's annotation %s: \"false\".", image, prepull.OptOut)
	}
}

// judgeElsewhere is for a placeholder without a container that warmpool keeps current: about each image that nothing else of
// it brings, in the version that the templates have.
func judgeElsewhere(o *Object, images []string) {
	const add = "an init container " + prepull.Name + " with a command that ends, as in the shipped manifests"
	present := prepull.Present(o.Spec)
	if len(present) == 0 {
		o.invalid(o.specPath("initContainers"), "", "nothing is pre-pulled: no init container is called %s", prepull.Name).withKey("absent").
			withFix("Add " + add + "; warmpool adds none by itself.")
		return
	}
	for _, image := range prepull.Missing(images, present) {
		others := o.elsewhere()
		i := slices.IndexFunc(others, func(c carrier) bool { return prepull.SameRepository(c.image, image) && !o.isTemplateImage(c.image) })
		if i >= 0 {
			o.invalid(others[i].path, others[i].image, "%s does not have %s, which a template of the pool has", others[i].name, image).withKey("absent").
				withFix("Name %s there, or add %s: warmpool keeps only that one current.", image, add)
			continue
		}
		o.invalid(o.specPath("initContainers"), "", "%s is not pre-pulled: no init container is called %s, and no other container and no image volume has it", image, prepull.Name).
			withKey("absent").withFix("Add " + add + ": warmpool keeps only that one current.")
	}
}
