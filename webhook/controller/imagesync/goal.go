package imagesync

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/prepull"
)

// goal is what a placeholder is to pull, beside what it pulls.
type goal struct {
	deployment *appsv1.Deployment
	pool       string
	// claimed are the templates of the pools that claim the placeholder, where more than one does; why says so.
	claimed []config.TemplateRef
	why     string
	// known reports that the pool's templates say what is to be pulled, and that the placeholder has not opted out; what
	// follows is empty otherwise.
	known   bool
	sources []prepull.Source
	record  prepull.Record
	// pulled are the images now, images those that are to be.
	pulled, images []string
	changes        []prepull.Change
	// elsewhere reports that the placeholder is in another namespace than warmpool may write to.
	elsewhere string
}

func goalOf(e *policy.Evaluator, d *appsv1.Deployment) goal {
	g := goal{deployment: d}
	o := e.Placeholder(d, d.Namespace)
	if o.Pool == nil {
		for _, pool := range o.Several {
			g.claimed = append(g.claimed, pool.Config.Templates...)
		}
		if len(g.claimed) > 0 {
			g.why = o.Problem
		}
		return g
	}
	g.pool = o.Pool.Config.Name
	if !e.SyncsImages(o) {
		return g
	}
	if g.sources, g.known = o.PrePull(); !g.known {
		return g
	}
	init := d.Spec.Template.Spec.InitContainers
	g.record = prepull.RecordOf(d.Annotations)
	g.pulled = prepull.Pulled(init)
	g.images = prepull.Images(g.sources, g.record, g.pulled)
	g.changes = prepull.Changes(init, g.images)
	if namespace := e.Config().Placeholders.Namespace; d.Namespace != namespace {
		g.elsewhere = namespace
	}
	return g
}

// reached reports whether the placeholder pulls what it is to pull.
func (g goal) reached() bool {
	return len(g.changes) == 0 && (g.hasFirst() || g.elsewherePulled())
}

// hasFirst reports whether there is a container whose image is to be kept current.
func (g goal) hasFirst() bool {
	return prepull.HasFirst(g.deployment.Spec.Template.Spec.InitContainers)
}

// elsewherePulled reports that other containers, or image volumes, bring all images to the node; they are left alone.
func (g goal) elsewherePulled() bool {
	return len(g.images) > 0 && len(prepull.Missing(g.images, prepull.Present(&g.deployment.Spec.Template.Spec))) == 0
}

// recorded reports whether the annotations say what is synced.
func (g goal) recorded() bool {
	return slices.Equal(prepull.NewRecord(g.sources, g.record), g.record)
}

// templates are the templates that the images come from, each once.
func (g goal) templates() []config.TemplateRef {
	refs := slices.Clone(g.claimed)
	for _, s := range g.sources {
		if !slices.Contains(refs, s.Template) {
			refs = append(refs, s.Template)
		}
	}
	return refs
}

// edited are the templates whose images are not those that were synced last, or are not pulled.
func (g goal) edited() []config.TemplateRef {
	var refs []config.TemplateRef
	for _, s := range g.sources {
		same := slices.Contains(g.record, s) && slices.Contains(g.pulled, s.Image)
		if s.Image != "" && !same && !slices.Contains(refs, s.Template) {
			refs = append(refs, s.Template)
		}
	}
	return refs
}

// templatesOf are the templates that ask for an image.
func (g goal) templatesOf(image string) []config.TemplateRef {
	var refs []config.TemplateRef
	for _, s := range g.sources {
		if s.Image == image {
			refs = append(refs, s.Template)
		}
	}
	return refs
}

func templateNames(refs []config.TemplateRef) string {
	var names []string
	for _, ref := range refs {
		names = append(names, ref.String())
	}
	return strings.Join(names, ", ")
}

// synced words a sync for an Event.
func (g goal) synced() string {
	return fmt.Sprintf("Deployment %s/%s of pool %s pulls %s now (before: %s)", g.deployment.Namespace, g.deployment.Name, g.pool,
		list(g.images), list(g.pulled))
}

// list writes images down, within what an Event's note holds.
func list(images []string) string {
	const most = 300
	text := strings.Join(images, ", ")
	if len(text) > most {
		return fmt.Sprintf("%s… (%d images)", text[:most], len(images))
	}
	return text
}
