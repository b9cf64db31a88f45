package cluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The custom resources that warmpool reads. Their served version is whatever discovery prefers.
var (
	NodePoolGroupKind          = schema.GroupKind{Group: "karpenter.sh", Kind: "NodePool"}
	WorkspaceTemplateGroupKind = schema.GroupKind{Group: "workspace.jupyter.org", Kind: "WorkspaceTemplate"}
)

// metadata is what is read of an object's metadata; the rest must not make an object unreadable.
type metadata struct {
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels"`
}

// NodePool is the part of a Karpenter NodePool that decides where pods may go. Read leniently:
// providers' builds differ in the rest.
type NodePool struct {
	Name string
	// Labels are the template's labels: every node of the pool carries them.
	Labels map[string]string
	// Taints are the template's taints, which nodes keep; StartupTaints go away once a node is set up.
	Taints, StartupTaints []corev1.Taint
	// Requirements are the template's requirements on node labels.
	Requirements []corev1.NodeSelectorRequirement
}

// NodePoolFrom reads a NodePool from its JSON content as unstructured maps. The error names the field.
func NodePoolFrom(content map[string]any) (*NodePool, error) {
	var raw struct {
		Metadata metadata `json:"metadata"`
		Spec     struct {
			Template struct {
				Metadata metadata `json:"metadata"`
				Spec     struct {
					Taints        []corev1.Taint                   `json:"taints"`
					StartupTaints []corev1.Taint                   `json:"startupTaints"`
					Requirements  []corev1.NodeSelectorRequirement `json:"requirements"`
				} `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}
	if _, err := Decode(content, &raw); err != nil {
		return nil, fmt.Errorf("read NodePool: %w", err)
	}
	return &NodePool{
		Name:          raw.Metadata.Name,
		Labels:        raw.Spec.Template.Metadata.Labels,
		Taints:        raw.Spec.Template.Spec.Taints,
		StartupTaints: raw.Spec.Template.Spec.StartupTaints,
		Requirements:  raw.Spec.Template.Spec.Requirements,
	}, nil
}

// WorkspaceTemplate is the part of a WorkspaceTemplate that decides what placeholders pre-pull.
type WorkspaceTemplate struct {
	Namespace, Name string
	// DefaultImage is as written in the template; the Workspace controller may complete it.
	DefaultImage string
	// AllowedImages are the images that Workspaces of the template may choose.
	AllowedImages []string
}

// WorkspaceTemplateFrom reads a WorkspaceTemplate from its JSON content as unstructured maps. The error names the field.
func WorkspaceTemplateFrom(content map[string]any) (*WorkspaceTemplate, error) {
	var raw struct {
		Metadata metadata `json:"metadata"`
		Spec     struct {
			DefaultImage  string   `json:"defaultImage"`
			AllowedImages []string `json:"allowedImages"`
		} `json:"spec"`
	}
	if _, err := Decode(content, &raw); err != nil {
		return nil, fmt.Errorf("read WorkspaceTemplate: %w", err)
	}
	return &WorkspaceTemplate{
		Namespace:     raw.Metadata.Namespace,
		Name:          raw.Metadata.Name,
		DefaultImage:  raw.Spec.DefaultImage,
		AllowedImages: raw.Spec.AllowedImages,
	}, nil
}
