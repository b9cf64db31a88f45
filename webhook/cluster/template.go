package cluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// WorkspaceTemplate is the part of a WorkspaceTemplate that decides what placeholders pre-pull.
type WorkspaceTemplate struct {
	Namespace, Name string
	// UID and APIVersion tell the object in Events about it; in files there is no UID.
	UID        types.UID
	APIVersion string
	// DefaultImage is as written in the template; the Workspace controller may complete it.
	DefaultImage string
	// AllowedImages are the images that Workspaces of the template may choose.
	AllowedImages []string
	// DefaultResources are what a Workspace gets that asks for nothing.
	DefaultResources corev1.ResourceRequirements
	// Bounds are the least and the most that a Workspace may request, by resource.
	Bounds map[corev1.ResourceName]Bounds
	// IdleShutdown tells that Workspaces of the template are stopped when no one uses them.
	IdleShutdown bool

	// What follows only an audit goes by: the node selection of a Workspace that makes none of its own, and the labels of
	// all. PlacementProblem says why it could not be read; empty when it could.
	NodeSelector     map[string]string
	Affinity         *corev1.Affinity
	Labels           map[string]string
	PlacementProblem string
}

// Bounds are the least and the most of a resource; nil: open.
type Bounds struct {
	Min *resource.Quantity `json:"min"`
	Max *resource.Quantity `json:"max"`
}

// WorkspaceTemplateFrom reads a WorkspaceTemplate from its JSON content as unstructured maps. The error names the field.
func WorkspaceTemplateFrom(content map[string]any) (*WorkspaceTemplate, error) {
	var raw struct {
		APIVersion string `json:"apiVersion"`
		Metadata   struct {
			metadata `json:",inline"`
			UID      types.UID `json:"uid"`
		} `json:"metadata"`
		Spec struct {
			DefaultImage     string                      `json:"defaultImage"`
			AllowedImages    []string                    `json:"allowedImages"`
			DefaultResources corev1.ResourceRequirements `json:"defaultResources"`
			ResourceBounds   struct {
				Resources map[corev1.ResourceName]Bounds `json:"resources"`
			} `json:"resourceBounds"`
			DefaultIdleShutdown any `json:"defaultIdleShutdown"`
		} `json:"spec"`
	}
	if _, err := Decode(content, &raw); err != nil {
		return nil, fmt.Errorf("read WorkspaceTemplate: %w", err)
	}
	template := &WorkspaceTemplate{
		Namespace:        raw.Metadata.Namespace,
		Name:             raw.Metadata.Name,
		UID:              raw.Metadata.UID,
		APIVersion:       raw.APIVersion,
		DefaultImage:     raw.Spec.DefaultImage,
		AllowedImages:    raw.Spec.AllowedImages,
		DefaultResources: raw.Spec.DefaultResources,
		Bounds:           raw.Spec.ResourceBounds.Resources,
		IdleShutdown:     enabled(raw.Spec.DefaultIdleShutdown),
	}
	template.addPlacement(content)
	return template, nil
}

// addPlacement reads what image sync and sizes do not go by, and what therefore must not make a template unreadable.
func (t *WorkspaceTemplate) addPlacement(content map[string]any) {
	var raw struct {
		Spec struct {
			DefaultNodeSelector map[string]string `json:"defaultNodeSelector"`
			DefaultAffinity     *corev1.Affinity  `json:"defaultAffinity"`
			BaseLabels          []struct {
				Key   string `json:"key"`
				Value string `json:"value"`
			} `json:"baseLabels"`
		} `json:"spec"`
	}
	if _, err := Decode(content, &raw); err != nil {
		t.PlacementProblem = err.Error()
		return
	}
	t.NodeSelector, t.Affinity = raw.Spec.DefaultNodeSelector, raw.Spec.DefaultAffinity
	for _, label := range raw.Spec.BaseLabels {
		if t.Labels == nil {
			t.Labels = map[string]string{}
		}
		t.Labels[label.Key] = label.Value
	}
}

// enabled reads a section that may be switched on; no more is asked of it.
func enabled(section any) bool {
	fields, ok := section.(map[string]any)
	return ok && fields["enabled"] == true
}
