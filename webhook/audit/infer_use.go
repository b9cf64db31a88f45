package audit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/prepull"
	"warmpool.sh/webhook/sizing"
)

// templatesOf are the WorkspaceTemplates whose Workspaces the pool is for, as far as can be told: those whose image its
// placeholders pre-pull; else, where no other pool has the same accelerators, those that ask for just these.
func templatesOf(pool *config.Pool, g *guess, cfg *config.WarmPoolConfiguration, pools *placement.Pools, facts *cluster.Snapshot) []config.TemplateRef {
	pulled := pulledBy(g)
	var byImage, byAccelerator []config.TemplateRef
	for _, t := range facts.Templates.All() {
		ref := config.TemplateRef{Namespace: t.Namespace, Name: t.Name}
		image := prepull.Resolve(t.DefaultImage, &cfg.Workspaces).Image
		if image != "" && slices.Contains(pulled, image) {
			byImage = append(byImage, ref)
		}
		asked := pools.Accelerators(&corev1.PodSpec{Containers: []corev1.Container{{Resources: t.DefaultResources}}})
		takers := 0
		for _, other := range pools.All() {
			if other.Offers(asked) {
				takers++
			}
		}
		if takers == 1 && pools.Get(pool.Name).Offers(asked) {
			byAccelerator = append(byAccelerator, ref)
		}
	}
	if len(byImage) > 0 {
		return byImage
	}
	return byAccelerator
}

// pulledBy are the images that the placeholders bring to their nodes.
func pulledBy(g *guess) []string {
	var images []string
	for _, d := range g.placeholders {
		images = append(images, prepull.Present(&d.Spec.Template.Spec)...)
	}
	return images
}

// modeOf takes the pool for exclusive where a placeholder asks for more than half of what a node has of something.
func modeOf(sizes *sizing.PoolSizes, g *guess, facts *cluster.Snapshot) config.Mode {
	for _, shape := range sizes.Shapes {
		for _, d := range g.placeholders {
			for name, quantity := range sizing.Request(&d.Spec.Template.Spec, d.Namespace, facts) {
				offer, known := shape.Offers[name]
				twice := quantity.DeepCopy()
				twice.Add(quantity)
				if known && name != corev1.ResourcePods && offer.Available.Sign() > 0 && twice.Cmp(offer.Available) > 0 {
					return config.Exclusive
				}
			}
		}
	}
	return config.Coexist
}
