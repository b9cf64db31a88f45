package poolview

import (
	"slices"

	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/prepull"
)

// Image is an image that placeholders of a pool pull or should pull.
type Image struct {
	// Image is the complete reference; empty where Problem says why it is not known.
	Image, Problem string
	// Template asks for the image, as NAMESPACE/NAME; empty: none does.
	Template string
	// PulledBy and MissingIn are placeholders that pull it and that do not, as NAMESPACE/NAME.
	PulledBy, MissingIn []string
}

// Freshness tells whether the pods of placeholders on a node have pulled what the pool's templates ask for.
type Freshness string

// The values of Freshness. Without placeholder it is empty.
const (
	Fresh        Freshness = "current"
	Stale        Freshness = "stale"
	FreshUnknown Freshness = "unknown"
)

func (v *viewer) images(pool *placement.Pool) []Image {
	var images []Image
	placeholders, sources := v.Of(pool.Config.Name), v.Sources(pool.Config.Name)
	for _, source := range sources {
		image := Image{Image: source.Image, Problem: source.Problem, Template: source.Template.String()}
		for _, o := range placeholders {
			if pulls(prepull.Present(o.Spec), source.Image) {
				image.PulledBy = append(image.PulledBy, o.Namespace+"/"+o.Name)
			} else {
				image.MissingIn = append(image.MissingIn, o.Namespace+"/"+o.Name)
			}
		}
		images = append(images, image)
	}
	for _, o := range placeholders {
		for _, pulled := range prepull.Present(o.Spec) {
			if !slices.ContainsFunc(sources, func(s prepull.Source) bool { return pulls([]string{pulled}, s.Image) }) {
				images = append(images, Image{Image: pulled, PulledBy: []string{o.Namespace + "/" + o.Name}})
			}
		}
	}
	return images
}

func pulls(pulled []string, image string) bool {
	return len(prepull.Missing([]string{image}, pulled)) == 0
}

func (v *viewer) freshness(pool string, placeholders []pooled) Freshness {
	if len(placeholders) == 0 {
		return ""
	}
	var pulled []string
	for _, pod := range placeholders {
		pulled = append(pulled, prepull.Present(&pod.Spec)...)
	}
	freshness, sources := Fresh, v.Sources(pool)
	if len(sources) == 0 {
		freshness = FreshUnknown
	}
	for _, source := range sources {
		switch {
		case source.Beyond:
		case source.Image == "":
			freshness = FreshUnknown
		case !pulls(pulled, source.Image):
			return Stale
		}
	}
	return freshness
}
