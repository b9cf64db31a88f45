package placing

import (
	"context"
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

// write applies what differs, and tells whether something did. Where there is no binding for all pods yet, or another
// policy than it was tried with, the samples come first.
func (k *Keeper) write(ctx context.Context, e *policy.Evaluator, want *cel.Placement) (wrote bool, err error) {
	var livePolicy admissionv1.MutatingAdmissionPolicy // first: where somebody has taken it away, nothing else is written
	switch found, err := k.read(ctx, want.Policy, &livePolicy); {
	case err != nil:
		return false, err
	case !found:
		return false, fmt.Errorf("the MutatingAdmissionPolicy %s does not exist: apply the manifests (manifests/overlays/cel)", want.Policy.Name)
	case !equality.Semantic.DeepEqual(livePolicy.Spec, want.Policy.Spec):
		if err := k.apply(ctx, want.Policy); err != nil {
			return false, err
		}
		wrote = true
	}
	var parameters corev1.ConfigMap
	switch found, err := k.read(ctx, want.Parameters, &parameters); {
	case err != nil:
		return false, err
	case !found || !maps.Equal(parameters.Data, want.Parameters.Data):
		if err := k.apply(ctx, want.Parameters); err != nil {
			return false, err
		}
		wrote = true
	}
	bound, err := k.bind(ctx, e, want)
	return wrote || bound, err
}

// bind has the policy hold for all pods, after the samples, and tells whether it did not.
func (k *Keeper) bind(ctx context.Context, e *policy.Evaluator, want *cel.Placement) (wrote bool, err error) {
	forAll := bindingOf(want, nil)
	var live admissionv1.MutatingAdmissionPolicyBinding
	switch found, err := k.read(ctx, forAll, &live); {
	case err != nil:
		return false, err
	case found && equality.Semantic.DeepEqual(live.Spec, forAll.Spec) && live.Annotations[tried] == forAll.Annotations[tried]:
		return false, nil
	case !found:
		if err := k.apply(ctx, bindingOf(want, sampleLabel)); err != nil {
			return false, err
		}
	}
	if err := k.check(ctx, e, sampleLabel); err != nil {
		return false, err
	}
	return true, k.apply(ctx, forAll)
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

// apply writes an object.
func (k *Keeper) apply(ctx context.Context, want client.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return fmt.Errorf("encode %s %s: %w", kindOf(want), want.GetName(), err)
	}
	object := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: content})
	if err := k.api.Apply(ctx, object, client.FieldOwner(FieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("write %s %s: %w", kindOf(want), want.GetName(), err)
	}
	k.log.Info("written", "kind", kindOf(want), "name", want.GetName())
	return nil
}

func kindOf(object client.Object) string { return object.GetObjectKind().GroupVersionKind().Kind }

// tried is an annotation of the binding that is for all pods, for who waits for that.
const tried = "warmpool.sh/placement-tried"

// bindingOf is the binding for the pods that have the labels. All that the API server would fill in is there, so that it can
// be compared.
func bindingOf(p *cel.Placement, labels map[string]string) *admissionv1.MutatingAdmissionPolicyBinding {
	b := p.Binding.DeepCopy()
	if labels == nil {
		b.Annotations = map[string]string{tried: "true"}
	}
	b.Spec.MatchResources = &admissionv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{MatchLabels: labels}, MatchPolicy: new(admissionv1.Equivalent),
	}
	return b
}
