package cluster

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds that only an audit looks at.
var (
	CapacityBufferGroupKind        = schema.GroupKind{Group: "autoscaling.x-k8s.io", Kind: "CapacityBuffer"}
	CertificateGroupKind           = schema.GroupKind{Group: "cert-manager.io", Kind: "Certificate"}
	WorkloadPriorityClassGroupKind = schema.GroupKind{Group: "kueue.x-k8s.io", Kind: "WorkloadPriorityClass"}
)

// NodeClass is the part of a provider's node class that every provider has.
type NodeClass struct {
	NodeClassRef
	// Ready is what the provider says of it; nil in files, and before it has looked.
	Ready *Condition
}

// NodeClassFrom reads a node class from its JSON content as unstructured maps. The error names the field.
func NodeClassFrom(kind schema.GroupKind, content map[string]any) (*NodeClass, error) {
	var raw struct {
		Metadata metadata `json:"metadata"`
		Status   struct {
			Conditions []Condition `json:"conditions"`
		} `json:"status"`
	}
	if _, err := Decode(content, &raw); err != nil {
		return nil, fmt.Errorf("read %s: %w", kind.Kind, err)
	}
	return &NodeClass{
		NodeClassRef: NodeClassRef{Group: kind.Group, Kind: kind.Kind, Name: raw.Metadata.Name},
		Ready:        ready(raw.Status.Conditions),
	}, nil
}

// CapacityBuffer is the part of a CapacityBuffer that says for which pods it keeps room.
type CapacityBuffer struct {
	Namespace, Name string
	// PodTemplate and Scalable name what its virtual pods look like: a PodTemplate, or a workload by kind and name.
	PodTemplate, ScalableKind, ScalableName string
}

// CapacityBufferFrom reads a CapacityBuffer from its JSON content as unstructured maps. The error names the field.
func CapacityBufferFrom(content map[string]any) (*CapacityBuffer, error) {
	var raw struct {
		Metadata metadata `json:"metadata"`
		Spec     struct {
			PodTemplateRef struct {
				Name string `json:"name"`
			} `json:"podTemplateRef"`
			ScalableRef struct {
				Kind string `json:"kind"`
				Name string `json:"name"`
			} `json:"scalableRef"`
		} `json:"spec"`
	}
	if _, err := Decode(content, &raw); err != nil {
		return nil, fmt.Errorf("read CapacityBuffer: %w", err)
	}
	return &CapacityBuffer{
		Namespace: raw.Metadata.Namespace, Name: raw.Metadata.Name, PodTemplate: raw.Spec.PodTemplateRef.Name,
		ScalableKind: raw.Spec.ScalableRef.Kind, ScalableName: raw.Spec.ScalableRef.Name,
	}, nil
}

// WorkloadPriorityClass is a kueue class that Workspaces may name.
type WorkloadPriorityClass struct{ Name string }

// WorkloadPriorityClassFrom reads a WorkloadPriorityClass from its JSON content as unstructured maps.
func WorkloadPriorityClassFrom(content map[string]any) (*WorkloadPriorityClass, error) {
	var raw struct {
		Metadata metadata `json:"metadata"`
	}
	if _, err := Decode(content, &raw); err != nil {
		return nil, fmt.Errorf("read WorkloadPriorityClass: %w", err)
	}
	return &WorkloadPriorityClass{Name: raw.Metadata.Name}, nil
}

// Certificate is one of cert-manager's; that it is there is all that is asked.
type Certificate struct{ Namespace, Name string }

// CertificateFrom reads a Certificate from its JSON content as unstructured maps.
func CertificateFrom(content map[string]any) (*Certificate, error) {
	var raw struct {
		Metadata metadata `json:"metadata"`
	}
	if _, err := Decode(content, &raw); err != nil {
		return nil, fmt.Errorf("read Certificate: %w", err)
	}
	return &Certificate{Namespace: raw.Metadata.Namespace, Name: raw.Metadata.Name}, nil
}
