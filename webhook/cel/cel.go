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
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"warmpool.sh/manifests/placement/admissionpolicy"
	"warmpool.sh/webhook/policy"
)

const (
	name = "warmpool-placement"
	// shippedNamespace is warmpool's own in placeholders.yaml.
	shippedNamespace = "warmpool-system"
)

// Placement are the objects that place Workspace pods inside the API server.
type Placement struct {
	Parameters *corev1.ConfigMap
	Policy     *admissionv1.MutatingAdmissionPolicy
	Binding    *admissionv1.MutatingAdmissionPolicyBinding
	// Gaps are what the policy lacks against the webhook, or does not know, one sentence each without a full stop.
	Gaps []string

	policy []byte // as YAML, in its order and with its comments
}

// NewPlacement makes them from what the Evaluator goes by, for a warmpool in the namespace. The error names what cannot be
// said in the parameters, which are lines of words.
func NewPlacement(e *policy.Evaluator, namespace string) (*Placement, error) {
	selector, err := json.Marshal(e.Config().Workspaces.Selector)
	if err != nil {
		return nil, fmt.Errorf("encode workspaces.selector: %w", err)
	}
	const constraints = "  matchConstraints:\n"
	p := &Placement{policy: []byte(strings.Replace(admissionpolicy.YAML, constraints, constraints+"    objectSelector: "+string(selector)+"\n", 1))}
	if err := yaml.UnmarshalStrict(p.policy, &p.Policy); err != nil {
		return nil, fmt.Errorf("decode policy.yaml: %w", err)
	}
	data, err := parameters(e)
	if err != nil {
		return nil, err
	}
	p.Parameters = &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Data:       data,
	}
	p.Binding = &admissionv1.MutatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: p.Policy.APIVersion, Kind: p.Policy.Kind + "Binding"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{
			PolicyName: name,
			ParamRef: &admissionv1.ParamRef{
				Name: name, Namespace: namespace,
				// Without its parameters the policy leaves pods alone, as the webhook does while it knows nothing.
				ParameterNotFoundAction: new(admissionv1.AllowAction),
			},
		},
	}
	p.Gaps = gaps(e)
	return p, nil
}

func gaps(e *policy.Evaluator) []string {
	var gaps []string
	for _, pool := range e.Pools().All() {
		for _, unknown := range pool.Unknown {
			gaps = append(gaps, fmt.Sprintf("pool %s: %s", pool.Config.Name, unknown))
		}
	}
	if templates := e.Facts().Templates; !templates.Known() {
		gaps = append(gaps, fmt.Sprintf("no pod will prefer nodes that have its image: WorkspaceTemplates: %s", templates.Reason()))
	}
	for _, x := range e.Exemptions() {
		if x.Until != "" {
			gaps = append(gaps, fmt.Sprintf("the exemption of %s/%s applies until %s: export again then, CEL has no clock", x.Namespace, x.Name, x.Until))
		}
	}
	return gaps
}

const header = `# Written by warmpool export cel. The placement of Workspace pods inside the API server, as by warmpool's webhook of pods:
# ConfigMap                       the pools, one word of data after the other: what changes with configuration, NodePools and templates
# MutatingAdmissionPolicy         chooses the pool and adds required node affinity, tolerations and the preference for nodes that have the image
# MutatingAdmissionPolicyBinding  brings the two together
# What needs the Deployment of a placeholder alone, as by warmpool's webhook of placeholders, where the rule denies in every pool:
# ValidatingAdmissionPolicy         anti-affinity on its own pods, Karpenter's do-not-disrupt, a command of pre-pull containers
# ValidatingAdmissionPolicyBinding  has it deny
# CEL cannot size a pod against nodes, read images from templates or warn with numbers: warmpool audit does.
`

// YAML are the objects as a stream of documents, in the order in which they are to be applied.
func (p *Placement) YAML() ([]byte, error) {
	text, err := documents(p.Parameters, p.policy, p.Binding)
	return append([]byte(header), text...), err
}

// documents writes objects as a stream of YAML documents; bytes are a document already.
func documents(objects ...any) ([]byte, error) {
	texts := make([][]byte, 0, len(objects))
	for _, object := range objects {
		text, isText := object.([]byte)
		if !isText {
			var err error
			if text, err = yaml.Marshal(object); err != nil {
				return nil, fmt.Errorf("encode %T: %w", object, err)
			}
		}
		texts = append(texts, text)
	}
	return bytes.Join(texts, []byte("---\n")), nil
}
