package cluster

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// The custom resources that warmpool reads. Their served version is whatever discovery prefers.
var (
	NodePoolGroupKind          = schema.GroupKind{Group: "karpenter.sh", Kind: "NodePool"}
	NodeClaimGroupKind         = schema.GroupKind{Group: "karpenter.sh", Kind: "NodeClaim"}
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
	// UID and APIVersion tell the object in Events about it; in files there is no UID.
	UID        types.UID
	APIVersion string
	// Labels are the template's labels: every node of the pool carries them.
	Labels map[string]string
	// Taints are the template's taints, which nodes keep; StartupTaints go away once a node is set up.
	Taints, StartupTaints []corev1.Taint
	// Requirements are the template's requirements on node labels.
	Requirements []corev1.NodeSelectorRequirement
	// MinValues are how many values of a label Karpenter must be able to choose from before it launches a node.
	MinValues map[string]int
	// Static tells that the NodePool keeps a fixed number of nodes and starts none for pods.
	Static bool

	// What follows only an audit goes by. Problem says why it could not be read; empty when it could.
	Problem string
	// NodeClass says how its machines are made.
	NodeClass NodeClassRef
	// Limits are the most that its nodes may have together; a resource without one has none.
	Limits corev1.ResourceList
	// Disruption says when Karpenter removes nodes.
	Disruption Disruption
	// Annotations are the template's annotations: every node of the pool carries them.
	Annotations map[string]string
	// ExpireAfter and TerminationGracePeriod are durations, or Never; empty where they are not set.
	ExpireAfter, TerminationGracePeriod string
	// Ready is what Karpenter says of it; nil in files, and before Karpenter has looked.
	Ready *Condition
}

// NodeClassRef names the object that says how machines are made; of which kind is the provider's.
type NodeClassRef struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
	Name  string `json:"name"`
}

// Key is the key of the node class in the Snapshot.
func (r NodeClassRef) Key() string { return r.Kind + "." + r.Group + "/" + r.Name }

// Disruption is when Karpenter removes the nodes of a NodePool. Empty fields are not set.
type Disruption struct {
	ConsolidationPolicy string             `json:"consolidationPolicy"`
	ConsolidateAfter    string             `json:"consolidateAfter"`
	Budgets             []DisruptionBudget `json:"budgets"`
}

// DisruptionBudget bounds how many nodes are disrupted at once: a number or a percentage, for the reasons, or for all
// where Reasons is nil, for the duration from each time of the schedule on, or always.
type DisruptionBudget struct {
	Nodes    string   `json:"nodes"`
	Reasons  []string `json:"reasons"`
	Schedule string   `json:"schedule"`
	Duration string   `json:"duration"`
}

// Condition is a condition of an object's status.
type Condition struct {
	Type    string                 `json:"type"`
	Status  corev1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message"`
}

// ready is the condition Ready, or nil.
func ready(conditions []Condition) *Condition {
	for i := range conditions {
		if conditions[i].Type == "Ready" {
			return &conditions[i]
		}
	}
	return nil
}

// requirement is one of a NodePool's on the labels of its nodes.
type requirement struct {
	corev1.NodeSelectorRequirement `json:",inline"`

	MinValues int `json:"minValues"`
}

// NodePoolFrom reads a NodePool from its JSON content as unstructured maps. The error names the field; it is ErrObsolete
// for a version that Karpenter 1 does not serve.
func NodePoolFrom(content map[string]any) (*NodePool, error) {
	if err := refuseObsolete(content, NodePoolGroupKind); err != nil {
		return nil, err
	}
	var raw struct {
		Metadata metadata `json:"metadata"`
		Spec     struct {
			Replicas *int64 `json:"replicas"`
			Template struct {
				Metadata metadata `json:"metadata"`
				Spec     struct {
					Taints        []corev1.Taint `json:"taints"`
					StartupTaints []corev1.Taint `json:"startupTaints"`
					Requirements  []requirement  `json:"requirements"`
				} `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}
	if _, err := Decode(content, &raw); err != nil {
		return nil, fmt.Errorf("read NodePool: %w", err)
	}
	pool := &NodePool{
		Name:          raw.Metadata.Name,
		Labels:        raw.Spec.Template.Metadata.Labels,
		Taints:        raw.Spec.Template.Spec.Taints,
		StartupTaints: raw.Spec.Template.Spec.StartupTaints,
		Static:        raw.Spec.Replicas != nil,
	}
	for _, r := range raw.Spec.Template.Spec.Requirements {
		pool.Requirements = append(pool.Requirements, r.NodeSelectorRequirement)
		if r.MinValues > max(1, pool.MinValues[r.Key]) {
			if pool.MinValues == nil {
				pool.MinValues = map[string]int{}
			}
			pool.MinValues[r.Key] = r.MinValues
		}
	}
	pool.APIVersion, _ = content["apiVersion"].(string)
	if fields, ok := content["metadata"].(map[string]any); ok {
		uid, _ := fields["uid"].(string)
		pool.UID = types.UID(uid)
	}
	pool.addLifecycle(content)
	return pool, nil
}

// addLifecycle reads what admission does not go by, and what therefore must not make a NodePool unreadable.
func (p *NodePool) addLifecycle(content map[string]any) {
	var raw struct {
		Spec struct {
			Limits     corev1.ResourceList `json:"limits"`
			Disruption Disruption          `json:"disruption"`
			Template   struct {
				Metadata struct {
					Annotations map[string]string `json:"annotations"`
				} `json:"metadata"`
				Spec struct {
					NodeClassRef           NodeClassRef `json:"nodeClassRef"`
					ExpireAfter            string       `json:"expireAfter"`
					TerminationGracePeriod string       `json:"terminationGracePeriod"`
				} `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
		Status struct {
			Conditions []Condition `json:"conditions"`
		} `json:"status"`
	}
	if _, err := Decode(content, &raw); err != nil {
		p.Problem = err.Error()
		return
	}
	template := &raw.Spec.Template.Spec
	p.NodeClass, p.ExpireAfter, p.TerminationGracePeriod = template.NodeClassRef, template.ExpireAfter, template.TerminationGracePeriod
	p.Limits, p.Disruption, p.Ready = raw.Spec.Limits, raw.Spec.Disruption, ready(raw.Status.Conditions)
	p.Annotations = raw.Spec.Template.Metadata.Annotations
}

// NodeClaim is the part of a Karpenter NodeClaim that says what its node will offer.
type NodeClaim struct {
	Name string
	// Labels that the node will have: the claim's own, and requirements with one value.
	Labels map[string]string
	Taints []corev1.Taint
	// Allocatable is empty until the provider has launched the machine.
	Allocatable corev1.ResourceList
	// Deleting tells that the claim goes away.
	Deleting bool
}

// NodeClaimFrom reads a NodeClaim from its JSON content as unstructured maps. The error names the field.
func NodeClaimFrom(content map[string]any) (*NodeClaim, error) {
	if err := refuseObsolete(content, NodeClaimGroupKind); err != nil {
		return nil, err
	}
	var raw struct {
		Metadata struct {
			metadata          `json:",inline"`
			DeletionTimestamp *string `json:"deletionTimestamp"`
		} `json:"metadata"`
		Spec struct {
			Taints       []corev1.Taint                   `json:"taints"`
			Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
		} `json:"spec"`
		Status struct {
			Allocatable corev1.ResourceList `json:"allocatable"`
		} `json:"status"`
	}
	if _, err := Decode(content, &raw); err != nil {
		return nil, fmt.Errorf("read NodeClaim: %w", err)
	}
	labels := map[string]string{}
	for _, r := range raw.Spec.Requirements {
		if r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1 {
			labels[r.Key] = r.Values[0]
		}
	}
	maps.Copy(labels, raw.Metadata.Labels)
	return &NodeClaim{
		Name: raw.Metadata.Name, Labels: labels, Taints: raw.Spec.Taints,
		Allocatable: raw.Status.Allocatable, Deleting: raw.Metadata.DeletionTimestamp != nil,
	}, nil
}
