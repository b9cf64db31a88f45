package prepull

import (
	"slices"
	"strings"

	"warmpool.sh/webhook/config"
)

// Annotations of placeholder Deployments; never of their pod templates, which would roll out.
const (
	// SyncedImage lists the images that the controller synced last, separated by commas, one for each template.
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
	images, templates := annotations[SyncedImage], strings.Split(annotations[SyncedTemplate], ",")
	if images == "" || len(templates) != strings.Count(images, ",")+1 {
		return nil
	}
	var record Record
	for i, image := range strings.Split(images, ",") {
		namespace, name, _ := strings.Cut(templates[i], "/")
		record = append(record, Source{Template: config.TemplateRef{Namespace: namespace, Name: name}, Image: image})
	}
	return record
}

// NewRecord is the record of a sync by the sources; a source that is not known keeps what the record before says.
func NewRecord(sources []Source, before Record) Record {
	var record Record
	for _, s := range sources {
		if s.Image != "" {
			record = append(record, Source{Template: s.Template, Image: s.Image})
			continue
		}
		for _, image := range before.of(s.Template) {
			record = append(record, Source{Template: s.Template, Image: image})
		}
	}
	// An unknown allowed image would repeat all that its template had.
	var distinct Record
	for _, s := range record {
		if !slices.Contains(distinct, s) {
			distinct = append(distinct, s)
		}
	}
	return distinct
}

// Annotations are the SyncedImage and SyncedTemplate annotations of the record.
func (r Record) Annotations() map[string]string {
	images, templates := make([]string, len(r)), make([]string, len(r))
	for i, s := range r {
		images[i], templates[i] = s.Image, s.Template.Namespace+"/"+s.Template.Name
	}
	return map[string]string{SyncedImage: strings.Join(images, ","), SyncedTemplate: strings.Join(templates, ",")}
}

// Covers tells whether the record has exactly these images.
func (r Record) Covers(images []string) bool {
	if len(r) == 0 {
		return false
	}
	for _, s := range r {
		if !slices.Contains(images, s.Image) {
			return false
		}
	}
	return !slices.ContainsFunc(images, func(image string) bool {
		return !slices.ContainsFunc(r, func(s Source) bool { return s.Image == image })
	})
}

func (r Record) of(template config.TemplateRef) []string {
	var images []string
	for _, s := range r {
		if s.Template == template {
			images = append(images, s.Image)
		}
	}
	return images
}
