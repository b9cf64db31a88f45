// Package config holds the WarmPoolConfiguration: its types, strict decoding, defaults, validation and reload.
package config

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Group, version and kind of the configuration file.
const (
	APIVersion = "config.warmpool.sh/v1alpha1"
	Kind       = "WarmPoolConfiguration"
)

// Action says what becomes of a rule's findings at admission, from the mildest to the strictest.
type Action string

// The actions. A rule that is Off neither judges nor fills.
const (
	Off   Action = "Off"
	Audit Action = "Audit"
	Warn  Action = "Warn"
	Deny  Action = "Deny"
)

// Mode is how a pool's placeholder shares a node with Workspaces.
type Mode string

// The sizing modes: a small placeholder that Workspaces run beside, or one that fills its node and is evicted.
const (
	Coexist   Mode = "Coexist"
	Exclusive Mode = "Exclusive"
)

// PrePull says which images of a template a placeholder pulls.
type PrePull string

// Default pulls each template's default image, Allowed its allowed images too.
const (
	PrePullDefault PrePull = "Default"
	PrePullAllowed PrePull = "Allowed"
)

// Autoscaler names what adds nodes to a pool.
type Autoscaler string

// The autoscalers that pools can have.
const (
	Karpenter         Autoscaler = "Karpenter"
	ClusterAutoscaler Autoscaler = "ClusterAutoscaler"
	NoAutoscaler      Autoscaler = "None"
)

// WarmPoolConfiguration is the file given to --config.
type WarmPoolConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// Placeholders says where placeholders live and which PriorityClass they use.
	Placeholders Placeholders `json:"placeholders,omitzero"`
	// Workspaces says how to know a Workspace pod and its images.
	Workspaces Workspaces `json:"workspaces,omitzero"`
	// AuditInterval is the time between two audits in the cluster. Default 10m.
	AuditInterval *metav1.Duration `json:"auditInterval,omitempty"`
	// Pools are the warm pools; where several would do for a pod, the first wins.
	Pools []Pool `json:"pools"`
	// Rules changes the action of rules, by rule id.
	Rules map[string]Action `json:"rules,omitempty"`
	// Exemptions lists objects that some rules leave alone.
	Exemptions []Exemption `json:"exemptions,omitempty"`
}

// Placeholders are the defaults of placeholder Deployments.
type Placeholders struct {
	// Namespace is where warmpool labels pods and expects budgets. Default overprovisioning.
	Namespace string `json:"namespace,omitempty"`
	// PriorityClassName is filled into placeholders that name none. Default overprovisioning-placeholder.
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// Workspaces says how to know a Workspace pod and how the Workspace controller resolves image names.
type Workspaces struct {
	// Selector matches the labels of Workspace pods. Default: workspace.jupyter.org/workspace-name exists.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// ImageRegistry is the Workspace controller's --application-images-registry: its prefix for image names without a slash.
	// Empty: it has none. Without this setting such names are not known.
	ImageRegistry *string `json:"imageRegistry,omitempty"`
	// ImageAliases are the short image names of the Workspace controller.
	ImageAliases map[string]string `json:"imageAliases,omitempty"`
	// DefaultTemplateNamespace is the Workspace controller's --default-template-namespace, where it looks for a template that the
	// Workspace's own namespace does not have. Its pods are labelled with the Workspace's namespace all the same.
	DefaultTemplateNamespace string `json:"defaultTemplateNamespace,omitempty"`
	// OnConflict is Warn (default) or Deny: what happens to a Workspace pod that excludes its own pool.
	OnConflict Action `json:"onConflict,omitempty"`
}

// Pool is a warm pool: nodes with one hardware purpose.
type Pool struct {
	// Name of the pool, unique; the value of the label warmpool.sh/pool.
	Name string `json:"name"`
	// NodePools are the Karpenter NodePools of the pool. Exactly one of NodePools and NodeLabel is set.
	NodePools []string `json:"nodePools,omitempty"`
	// NodeLabel tells the pool's nodes where they do not come from Karpenter or carry their own label.
	NodeLabel *NodeLabel `json:"nodeLabel,omitempty"`
	// Accelerators are globs (path.Match) over extended resource names; empty: a pool without accelerators.
	Accelerators []string `json:"accelerators,omitempty"`
	// NodeTaints are taints that the nodes carry and no NodePool declares, as KEY=VALUE:EFFECT or KEY:EFFECT.
	NodeTaints []string `json:"nodeTaints,omitempty"`
	// NamespaceSelector says by the labels of their namespace which Workspaces may use the pool; others' are not placed there,
	// with a warning. Absent: all.
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// Templates are the WorkspaceTemplates whose images are pre-pulled, in this order.
	Templates []TemplateRef `json:"templates,omitempty"`
	// PrePull is Default or Allowed: templates' allowedImages too, up to 16 images for a placeholder. Default Default.
	PrePull PrePull `json:"prePull,omitempty"`
	// WarmFirst makes Workspace pods prefer nodes that have their image. Default true.
	WarmFirst *bool `json:"warmFirst,omitempty"`
	// Autoscaler is Karpenter, ClusterAutoscaler or None. Default Karpenter.
	Autoscaler Autoscaler `json:"autoscaler,omitempty"`
	// Rules changes the action of rules for this pool, by rule id.
	Rules map[string]Action `json:"rules,omitempty"`
	// Sizing is the placeholder's sizing.
	Sizing Sizing `json:"sizing,omitzero"`
	// Size has warmpool find by demand how many placeholders the pool keeps. Absent: somebody else sets their number.
	Size *Size `json:"size,omitempty"`
}

// NodeLabel is a node label key and the values that mark a pool's nodes.
type NodeLabel struct {
	Key    string   `json:"key"`
	Values []string `json:"values"`
}

// TemplateRef names a WorkspaceTemplate.
type TemplateRef struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String is NAMESPACE/NAME, the key of the template among the facts.
func (r TemplateRef) String() string { return r.Namespace + "/" + r.Name }

// Sizing is how large a pool's placeholder is meant to be.
type Sizing struct {
	// Mode is Coexist (default) or Exclusive.
	Mode Mode `json:"mode,omitempty"`
	// Allocatable is what a node of the pool offers, used only while no node tells.
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
}

// Exemption keeps rules away from objects.
type Exemption struct {
	// Rules are the ids of the rules that do not apply.
	Rules []string `json:"rules"`
	// Namespace and Name tell the object; an empty Name means every object of the namespace.
	Namespace string `json:"namespace"`
	Name      string `json:"name,omitempty"`
	// Reason says why; required.
	Reason string `json:"reason"`
	// Until is the last day (YYYY-MM-DD, UTC) on which the exemption applies; empty: permanently.
	Until string `json:"until,omitempty"`
}

// Label is the node label that marks the pool's nodes: its key and values.
func (p *Pool) Label() (key string, values []string) {
	if p.NodeLabel != nil {
		return p.NodeLabel.Key, p.NodeLabel.Values
	}
	return NodePoolLabel, p.NodePools
}
