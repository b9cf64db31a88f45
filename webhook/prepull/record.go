package prepull

import (
	"slices"
	"strings"

	"github.com/distribution/reference"

	"warmpool.sh/webhook/config"
)

// Annotations of placeholder Deployments; never of their pod templates, which would roll out.
const (
	// SyncedImage lists the images that the controller synced last, separated by commas: one for each image that a
	// template asks for, in this order; empty for one that was never known.
	SyncedImage = "warmpool.sh/synced-image"
	// SyncedTemplate lists the WorkspaceTemplate of each, as namespace/name.
	SyncedTemplate = "warmpool.sh/synced-template"
	// SyncedAt is when (RFC 3339, UTC).
	SyncedAt = "warmpool.sh/synced-at"
	// OptOut with the value "false" takes a placeholder out of image sync.
	OptOut = "warmpool.sh/image-sync"
)

// Record is what was synced last, image by image.
type Record []Source

// RecordOf reads the annotations of a placeholder Deployment; nil when they say nothing that can be used.
func RecordOf(annotations map[string]string) Record {
	list := annotations[SyncedImage]
	if strings.Trim(list, ",") == "" {
		return nil
	}
	images, templates := strings.Split(list, ","), strings.Split(annotations[SyncedTemplate], ",")
	if len(images) != len(templates) {
		return nil
	}
	record := make(Record, len(images))
	for i, image := range images {
		namespace, name, _ := strings.Cut(templates[i], "/")
		record[i] = Source{Template: config.TemplateRef{Namespace: namespace, Name: name}, Image: image}
	}
	return record
}

// NewRecord is the record of a sync by the sources; a source that is not known keeps what the record before has for it.
// It is nil when it would have no image at all.
func NewRecord(sources []Source, before Record) Record {
	var record Record
	for i, s := range sources {
		if s.Beyond {
			continue
		}
		images := []string{s.Image}
		if s.Image == "" {
			if last := before.of(sources, i); len(last) > 0 {
				images = last
			}
		}
		for _, image := range images {
			record = append(record, Source{Template: s.Template, Image: image})
		}
	}
	if !slices.ContainsFunc(record, func(s Source) bool { return s.Image != "" }) {
		return nil
	}
	return record
}

// Annotations are the SyncedImage and SyncedTemplate annotations of the record.
func (r Record) Annotations() map[string]string {
	images, templates := make([]string, len(r)), make([]string, len(r))
	for i, s := range r {
		images[i], templates[i] = s.Image, s.Template.String()
	}
	return map[string]string{SyncedImage: strings.Join(images, ","), SyncedTemplate: strings.Join(templates, ",")}
}

// Covers tells whether the record has exactly these images.
func (r Record) Covers(images []string) bool {
	for _, s := range r {
		if s.Image != "" && !slices.Contains(images, s.Image) {
			return false
		}
	}
	return len(images) > 0 && !slices.ContainsFunc(images, func(image string) bool { return !r.has(image) })
}

func (r Record) has(image string) bool {
	return image != "" && slices.ContainsFunc(r, func(s Source) bool { return s.Image == image })
}

// of is what the record has for one of the sources: the image with the same place among those of its template, or all of
// them where the template has no other source, as one that is deleted. Users can write the record: what is no image is
// left out.
func (r Record) of(sources []Source, i int) []string {
	of := func(all []Source) []Source {
		return slices.DeleteFunc(slices.Clone(all), func(s Source) bool { return s.Template != sources[i].Template })
	}
	had, place := of(r), len(of(sources[:i]))
	if len(of(sources)) > 1 {
		had = had[min(place, len(had)):min(place+1, len(had))]
	}
	var images []string
	for _, s := range had {
		if _, err := reference.ParseNormalizedNamed(s.Image); err == nil {
			images = append(images, s.Image)
		}
	}
	return images
}
