// Package prepull says which images the placeholders of a pool pull, and what that makes of their init containers. It is
// pure: the webhook fills by it at admission, the controller of webhook/controller/imagesync patches by it when a template changes.
package prepull

import (
	"fmt"
	"slices"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
)

// MaxImages is how many images a placeholder pulls at most: templates' default images all, and of their allowed images as many
// as there is room for. Each is gigabytes on the disk of every node of the pool.
const MaxImages = 16

// Source is one image that a template of the pool asks for, or why it is not known.
type Source struct {
	Template config.TemplateRef
	// Image is the complete reference; empty when it is not known.
	Image string
	// Problem says why Image is empty, as a clause that names the template.
	Problem string
	// ByController tells that the Problem is the Workspace controller's; see Resolution.
	ByController bool
	// Beyond tells that Problem is about images beyond MaxImages; the source stands for none.
	Beyond bool
}

// Sources are the images of a pool's templates in the order of the configuration: each template's default image and,
// with prePull Allowed, its allowed images, up to MaxImages. The templates must be known.
func Sources(pool *config.Pool, workspaces *config.Workspaces, templates cluster.Facts[cluster.WorkspaceTemplate]) []Source {
	var sources []Source
	var images map[string]bool // that count against MaxImages: the defaults first
	if pool.PrePull == config.PrePullAllowed {
		images = defaults(pool, workspaces, templates)
	}
	for _, ref := range pool.Templates {
		key := ref.String()
		template := templates.Get(key)
		if template == nil {
			problem := fmt.Sprintf("WorkspaceTemplate %s %s", key, templates.Missing())
			if reason := templates.Malformed(key); reason != "" {
				problem = fmt.Sprintf("WorkspaceTemplate %s cannot be read: %s", key, reason)
			}
			sources = append(sources, Source{Template: ref, Problem: problem})
			continue
		}
		sources = append(sources, source(ref, "defaultImage", template.DefaultImage, workspaces))
		if pool.PrePull == config.PrePullAllowed {
			sources = append(sources, allowed(ref, template.AllowedImages, workspaces, images)...)
		}
	}
	return sources
}

func defaults(pool *config.Pool, workspaces *config.Workspaces, templates cluster.Facts[cluster.WorkspaceTemplate]) map[string]bool {
	images := map[string]bool{}
	for _, ref := range pool.Templates {
		if template := templates.Get(ref.String()); template != nil {
			images[Resolve(template.DefaultImage, workspaces).Image] = true
		}
	}
	return images
}

// allowed are the sources of a template's allowed images. Those that are no image count too: a template may list many.
func allowed(ref config.TemplateRef, listed []string, workspaces *config.Workspaces, images map[string]bool) []Source {
	var sources []Source
	for i, image := range listed {
		s := source(ref, fmt.Sprintf("allowedImages[%d]", i), image, workspaces)
		counted := s.Image
		if counted == "" {
			counted = s.Problem
		}
		if !images[counted] && len(images) >= MaxImages {
			return append(sources, Source{Template: ref, Beyond: true, Problem: fmt.Sprintf(
				"of the allowedImages of WorkspaceTemplate %s the %d from allowedImages[%d] on are not pulled ahead: a placeholder pulls %d images at most", ref, len(listed)-i, i, MaxImages)})
		}
		images[counted] = true
		sources = append(sources, s)
	}
	return sources
}

func source(ref config.TemplateRef, field, image string, workspaces *config.Workspaces) Source {
	r := Resolve(image, workspaces)
	if r.Problem != "" {
		r.Problem = fmt.Sprintf("%s %.100q of WorkspaceTemplate %s %s", field, image, ref, r.Problem)
	}
	return Source{Template: ref, Image: r.Image, Problem: r.Problem, ByController: r.ByController}
}

// Images are the distinct images to pull, in the order of the containers: those of the sources, and for each source that
// is not known what the record has for it. Where the record has nothing for one, it may be any image that is pulled now
// and belongs to no other source: none of these is given up, and they keep their places if they can.
func Images(sources []Source, record Record, now []string) []string {
	images := make([]string, 0, len(sources))
	add := func(more ...string) {
		for _, image := range more {
			if !slices.Contains(images, image) {
				images = append(images, image)
			}
		}
	}
	unclaimed := func(image string) bool { return !record.has(image) && !Record(sources).has(image) }
	guessed := false
	for i, s := range sources {
		if s.Beyond {
			continue
		} else if s.Image != "" {
			add(s.Image)
		} else if last := record.of(sources, i); len(last) > 0 {
			add(last...)
		} else {
			guessed = true
			if at := len(images); at < len(now) && unclaimed(now[at]) {
				add(now[at])
			}
		}
	}
	for _, image := range now {
		if guessed && unclaimed(image) {
			add(image)
		}
	}
	return images
}
