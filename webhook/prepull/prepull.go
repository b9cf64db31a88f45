// Package prepull says which images the placeholders of a pool pull, and what that makes of their init containers. It is
// pure: the webhook fills by it at admission, the controller of webhook/imagesync patches by it when a template changes.
package prepull

import (
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
)

// Source is one image that a template of the pool asks for, or why it is not known.
type Source struct {
	Template config.TemplateRef
	// Image is the complete reference; empty when it is not known.
	Image string
	// Problem says why Image is empty, as a clause that names the template.
	Problem string
}

// Sources are the images of a pool's templates in the order of the configuration: each template's default image and,
// with prePull Allowed, its allowed images. The templates must be known.
func Sources(pool *config.Pool, workspaces *config.Workspaces, templates cluster.Facts[cluster.WorkspaceTemplate]) []Source {
	var sources []Source
	for _, ref := range pool.Templates {
		key := ref.Namespace + "/" + ref.Name
		template := templates.Get(key)
		if template == nil {
			problem := fmt.Sprintf("WorkspaceTemplate %s does not exist", key)
			if reason := templates.Malformed(key); reason != "" {
				problem = fmt.Sprintf("WorkspaceTemplate %s cannot be read: %s", key, reason)
			}
			sources = append(sources, Source{Template: ref, Problem: problem})
			continue
		}
		sources = append(sources, source(ref, "defaultImage", template.DefaultImage, workspaces))
		if pool.PrePull == config.PrePullAllowed {
			for i, image := range template.AllowedImages {
				sources = append(sources, source(ref, fmt.Sprintf("allowedImages[%d]", i), image, workspaces))
			}
		}
	}
	return sources
}

func source(ref config.TemplateRef, field, image string, workspaces *config.Workspaces) Source {
	resolved, problem := Resolve(image, workspaces)
	if problem != "" {
		problem = fmt.Sprintf("spec.%s of WorkspaceTemplate %s/%s %s", field, ref.Namespace, ref.Name, problem)
	}
	return Source{Template: ref, Image: resolved, Problem: problem}
}

// Resolve completes an image name as the Workspace controller does: short names by imageAliases, other names without a
// slash by imageRegistry, with the tag latest where they have neither tag nor digest. Where that cannot be done, problem
// says why, as the end of a sentence about the name.
func Resolve(image string, workspaces *config.Workspaces) (resolved, problem string) {
	alias, aliased := workspaces.ImageAliases[image]
	switch {
	case image == "":
		return "", "is empty: the Workspace controller then takes an image that warmpool cannot know; name one"
	case aliased:
		image = alias
	case !strings.Contains(image, "/") && workspaces.ImageRegistry == "":
		return "", fmt.Sprintf("is the bare image name %.100q: set the registry (workspaces.imageRegistry, or imageAliases)", image)
	case !strings.Contains(image, "/"):
		image = strings.TrimSuffix(workspaces.ImageRegistry, "/") + "/" + image
		if !strings.ContainsAny(image[strings.LastIndex(image, "/"):], ":@") {
			image += ":latest"
		}
	}
	if _, err := reference.ParseNormalizedNamed(image); err != nil {
		return "", fmt.Sprintf("is no image reference: %.200q: %v", image, err)
	}
	return image, ""
}

// Images are the distinct images to pull, in the order of the containers: those of the sources, and for each source that
// is not known the images that its template had last: by the record of the last sync, else by the place among those
// that the placeholder pulls now. Without a record nothing that is pulled now is given up for it.
func Images(sources []Source, record Record, now []string) []string {
	var images []string
	add := func(more ...string) {
		for _, image := range more {
			if !slices.Contains(images, image) {
				images = append(images, image)
			}
		}
	}
	guessed := false
	for i, s := range sources {
		last := record.of(s.Template)
		switch {
		case s.Image != "":
			add(s.Image)
		case len(last) > 0:
			add(last...)
		default:
			guessed = true
			if i < len(now) {
				add(now[i])
			}
		}
	}
	if guessed {
		add(now...)
	}
	return images
}
