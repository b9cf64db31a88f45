package cel

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

const placeholdersName = "warmpool-placeholders"

//go:embed placeholders.yaml
var placeholdersYAML []byte

// Placeholders are the objects that hold placeholders to those rules, inside the API server, that need the Deployment
// alone.
type Placeholders struct {
	Policy  *admissionv1.ValidatingAdmissionPolicy
	Binding *admissionv1.ValidatingAdmissionPolicyBinding
}

// NewPlaceholders makes them from the configuration that the Evaluator goes by, for a warmpool in the namespace. A rule that
// does not deny in every pool is left out. The result is nil where none is left.
func NewPlaceholders(e *policy.Evaluator, namespace string) (*Placeholders, error) {
	text := bytes.ReplaceAll(placeholdersYAML, []byte(shippedNamespace), []byte(namespace))
	text = bytes.ReplaceAll(text, []byte("PRIORITYCLASS"), []byte(e.Config().Placeholders.PriorityClassName))
	p := &Placeholders{}
	if err := yaml.UnmarshalStrict(text, &p.Policy); err != nil {
		return nil, fmt.Errorf("decode placeholders.yaml: %w", err)
	}
	var validations []admissionv1.Validation
	for _, v := range p.Policy.Spec.Validations {
		rule := deniedBy(e, v.Message)
		if rule == nil {
			continue
		}
		v.Message = ""
		v.MessageExpression = fmt.Sprintf("(%s) + %s", strings.TrimSpace(v.MessageExpression), strconv.Quote(". "+rule.Fix+" (rule "+rule.ID+")"))
		if exempt := exempt(e, rule.ID); exempt != "" {
			v.Expression = exempt + " || " + v.Expression
		}
		validations = append(validations, v)
	}
	if len(validations) == 0 {
		return nil, nil
	}
	p.Policy.Spec.Validations = validations
	p.Binding = &admissionv1.ValidatingAdmissionPolicyBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: p.Policy.APIVersion, Kind: p.Policy.Kind + "Binding"},
		ObjectMeta: metav1.ObjectMeta{Name: placeholdersName},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: placeholdersName, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	return p, nil
}

// deniedBy is the rule where it denies in every pool; Karpenter's annotation counts only where Karpenter runs all of them.
func deniedBy(e *policy.Evaluator, id string) *policy.Rule {
	pools := e.Config().Pools
	if id == "placeholder-do-not-disrupt" && slices.ContainsFunc(pools, func(p config.Pool) bool { return p.Autoscaler != config.Karpenter }) {
		return nil
	}
	rules := e.Denying()
	i := slices.IndexFunc(rules, func(r *policy.Rule) bool { return r.ID == id })
	if i < 0 {
		return nil
	}
	return rules[i]
}

// exempt is an expression that is true for what is exempt from a rule; empty where nothing is.
func exempt(e *policy.Evaluator, id string) string {
	var keys []string
	for _, x := range e.Exemptions() {
		if slices.Contains(x.Rules, id) {
			keys = append(keys, strconv.Quote(x.Namespace+"/"+x.Name))
		}
	}
	if len(keys) == 0 {
		return ""
	}
	return "[request.namespace + '/', request.namespace + '/' + object.metadata.name].exists(key, key in [" + strings.Join(keys, ", ") + "])"
}

// YAML are the objects as a stream of documents.
func (p *Placeholders) YAML() ([]byte, error) { return documents(p.Policy, p.Binding) }
