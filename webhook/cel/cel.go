// Package cel writes the placement of Workspace pods as a MutatingAdmissionPolicy, which places pods inside the API server
// as webhook/placement does in the webhook. It is pure.
//
// The policy is the same text for every cluster, but for the labels that tell a Workspace pod. What differs, the pools, is a
// ConfigMap that the policy has as its parameter: another taint, NodePool, template image or configuration changes data
// only, which the API server takes up without compiling anything. CEL reads no JSON or YAML, so the data are lines of words,
// which labels, taints, images and resource names allow: none of them has a space. The policy chooses the pool first and
// then takes only that pool's lines apart, so that the number of pools hardly matters.
package cel

import (
	_ "embed"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"warmpool.sh/webhook/policy"
)

const (
	name      = "warmpool-placement"
	namespace = "warmpool-system"
)

//go:embed policy.yaml
var policyYAML []byte

// Placement are the objects that place Workspace pods inside the API server.
type Placement struct {
	Policy     *admissionv1.MutatingAdmissionPolicy
	Binding    *admissionv1.MutatingAdmissionPolicyBinding
	Parameters *corev1.ConfigMap
}

// NewPlacement makes them from what the Evaluator goes by. The error names what cannot be said in the parameters, which
// are lines of words.
func NewPlacement(e *policy.Evaluator) (*Placement, error) {
	var p admissionv1.MutatingAdmissionPolicy
	if err := yaml.UnmarshalStrict(policyYAML, &p); err != nil {
		return nil, fmt.Errorf("decode policy.yaml: %w", err)
	}
	p.Spec.MatchConstraints.ObjectSelector = e.Config().Workspaces.Selector.DeepCopy()
	data, err := parameters(e)
	if err != nil {
		return nil, err
	}
	return &Placement{
		Policy: &p,
		Binding: &admissionv1.MutatingAdmissionPolicyBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: p.APIVersion, Kind: p.Kind + "Binding"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{
				PolicyName: name,
				ParamRef: &admissionv1.ParamRef{
					Name: name, Namespace: namespace,
					// Without its parameters the policy leaves pods alone, as the webhook does while it knows nothing.
					ParameterNotFoundAction: new(admissionv1.AllowAction),
				},
			},
		},
		Parameters: &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
			Data:       data,
		},
	}, nil
}
