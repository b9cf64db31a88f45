package policysync

import (
	"context"
	"errors"
	"fmt"
	"maps"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/cel"
	"warmpool.sh/webhook/policy"
)

// FieldManager is the field manager of every write, so that others can ignore what it owns.
const FieldManager = "warmpool-placement"

const (
	// trialSuffix is that of the names of the binding for samples and of its parameters.
	trialSuffix = "-trial"
	// inForce is an annotation of the parameters, for who waits until the policy goes by them: the uid of the binding.
	inForce = "warmpool.sh/placement-in-force"
)

// shipped tells what is wrong with the policy and the bindings, which only the manifests bring. binding is that of all pods;
// absent tells that there is nothing to write parameters for.
func (k *Keeper) shipped(ctx context.Context, want *cel.Placement) (binding *admissionv1.MutatingAdmissionPolicyBinding, absent, wrong error) {
	const fix = "apply the manifests of this version (manifests/overlays/cel)"
	var live admissionv1.MutatingAdmissionPolicy
	switch found, err := k.read(ctx, want.Policy, &live); {
	case err != nil:
		return nil, err, nil
	case !found:
		return nil, fmt.Errorf("the MutatingAdmissionPolicy %s does not exist: %s", want.Policy.Name, fix), nil
	case !equality.Semantic.DeepEqual(selectorOf(&live), selectorOf(want.Policy)):
		wrong = fmt.Errorf("the MutatingAdmissionPolicy %s is for other pods than workspaces.selector of the configuration: "+
			"have your overlay set spec.matchConstraints.objectSelector to the same", want.Policy.Name)
	case !equality.Semantic.DeepEqual(live.Spec, want.Policy.Spec):
		wrong = fmt.Errorf("the MutatingAdmissionPolicy %s is not that of this version, or was changed: %s", want.Policy.Name, fix)
	}
	for _, bound := range []*admissionv1.MutatingAdmissionPolicyBinding{bindingOf(want, true), bindingOf(want, false)} {
		binding = &admissionv1.MutatingAdmissionPolicyBinding{}
		switch found, err := k.read(ctx, bound, binding); {
		case err != nil:
			return nil, err, nil
		case !found:
			return nil, fmt.Errorf("the MutatingAdmissionPolicyBinding %s does not exist: %s", bound.Name, fix), nil
		case !equality.Semantic.DeepEqual(binding.Spec, bound.Spec):
			wrong = errors.Join(wrong, fmt.Errorf("the MutatingAdmissionPolicyBinding %s was changed: %s", bound.Name, fix))
		}
	}
	return binding, nil, wrong
}

func selectorOf(p *admissionv1.MutatingAdmissionPolicy) *metav1.LabelSelector {
	if p.Spec.MatchConstraints == nil {
		return nil
	}
	return p.Spec.MatchConstraints.ObjectSelector
}

// bindingOf is a binding as the manifests have it, with all that the API server fills in, so that it can be compared.
func bindingOf(p *cel.Placement, trial bool) *admissionv1.MutatingAdmissionPolicyBinding {
	b := p.Binding.DeepCopy()
	samples := metav1.LabelSelectorRequirement{Key: sampleLabel, Operator: metav1.LabelSelectorOpNotIn, Values: []string{sampleTrial}}
	if trial {
		b.Name += trialSuffix
		b.Spec.ParamRef.Name += trialSuffix
		samples.Operator = metav1.LabelSelectorOpIn
	}
	b.Spec.MatchResources = &admissionv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{}, MatchPolicy: new(admissionv1.Equivalent),
		ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{samples}},
	}
	return b
}

// write brings the parameters into the cluster where they differ, after they were tried. It gives them as they are there, and
// tells whether they were written.
func (k *Keeper) write(ctx context.Context, e *policy.Evaluator, want *cel.Placement) (live *corev1.ConfigMap, wrote bool, err error) {
	live = &corev1.ConfigMap{}
	found, err := k.read(ctx, want.Parameters, live)
	if err != nil || found && maps.Equal(live.Data, want.Parameters.Data) {
		return live, false, err
	}
	trial := want.Parameters.DeepCopy()
	trial.Name += trialSuffix
	tried, err := k.apply(ctx, trial)
	if err != nil {
		return nil, false, err
	}
	if err := k.check(ctx, e, tried, map[string]string{sampleLabel: sampleTrial}); err != nil {
		return nil, false, err
	}
	live, err = k.apply(ctx, want.Parameters)
	return live, true, err
}

// tell says by an annotation that the policy is in force, by the binding. What is said already is not written again.
func (k *Keeper) tell(ctx context.Context, want *cel.Placement, live *corev1.ConfigMap, binding *admissionv1.MutatingAdmissionPolicyBinding) error {
	if live.Annotations[inForce] == string(binding.UID) {
		return nil
	}
	told := want.Parameters.DeepCopy()
	told.Annotations = map[string]string{inForce: string(binding.UID)}
	_, err := k.apply(ctx, told)
	return err
}

// read reads what there is of an object into live.
func (k *Keeper) read(ctx context.Context, want, live client.Object) (found bool, err error) {
	if err := k.api.Get(ctx, client.ObjectKeyFromObject(want), live); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read %s %s: %w", kindOf(want), want.GetName(), err)
	} else if err != nil {
		return false, nil
	}
	return true, nil
}

// apply writes parameters, and gives them as they are then.
func (k *Keeper) apply(ctx context.Context, want *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", kindOf(want), want.GetName(), err)
	}
	written := &unstructured.Unstructured{Object: content}
	object := client.ApplyConfigurationFromUnstructured(written)
	if err := k.api.Apply(ctx, object, client.FieldOwner(FieldManager), client.ForceOwnership); err != nil {
		return nil, fmt.Errorf("write %s %s: %w", kindOf(want), want.GetName(), err)
	}
	k.log.Info("written", "kind", kindOf(want), "name", want.GetName())
	live := want.DeepCopy()
	live.ResourceVersion = written.GetResourceVersion()
	return live, nil
}

func kindOf(object client.Object) string { return object.GetObjectKind().GroupVersionKind().Kind }
