package placing

import (
	"context"
	"fmt"
	"maps"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	wrotePolicy, err := k.writePolicy(ctx, want.Policy) // first: where somebody has taken it away, nothing else is written
	if err != nil {
		return false, err
	}
	parameters := &corev1.ConfigMap{}
	wroteParameters, err := k.apply(ctx, want.Parameters, parameters, func() bool { return maps.Equal(parameters.Data, want.Parameters.Data) })
	if err != nil {
		return false, err
	}
	live := &admissionv1.MutatingAdmissionPolicyBinding{}
	forAll := bindingOf(want, nil)
	isForAll := func() bool {
		return equality.Semantic.DeepEqual(live.Spec, forAll.Spec) && live.Annotations[tried] == forAll.Annotations[tried]
	}
	if err := k.api.Get(ctx, client.ObjectKeyFromObject(forAll), live); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read the binding of the policy: %w", err)
	}
	if isForAll() {
		return wroteParameters || wrotePolicy, nil
	}
	if live.UID == "" {
		forSamples := bindingOf(want, sampleLabel)
		if _, err := k.apply(ctx, forSamples, live, func() bool { return false }); err != nil {
			return false, err
		}
	}
	if err := k.check(ctx, e, sampleLabel); err != nil {
		return false, err
	}
	_, err = k.apply(ctx, forAll, live, isForAll)
	return true, err
}

// writePolicy changes the policy of the manifests.
func (k *Keeper) writePolicy(ctx context.Context, want *admissionv1.MutatingAdmissionPolicy) (wrote bool, err error) {
	live := &admissionv1.MutatingAdmissionPolicy{}
	err = k.api.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		return false, fmt.Errorf("the MutatingAdmissionPolicy %s does not exist: apply the manifests (manifests/overlays/cel)", want.Name)
	}
	return k.apply(ctx, want, live, func() bool { return equality.Semantic.DeepEqual(live.Spec, want.Spec) })
}

// apply writes an object unless the one that there is, which is read into live, is the same.
func (k *Keeper) apply(ctx context.Context, want, live client.Object, isSame func() bool) (wrote bool, err error) {
	what := fmt.Sprintf("%s %s", want.GetObjectKind().GroupVersionKind().Kind, want.GetName())
	switch err := k.api.Get(ctx, client.ObjectKeyFromObject(want), live); {
	case client.IgnoreNotFound(err) != nil:
		return false, fmt.Errorf("read %s: %w", what, err)
	case err == nil && isSame():
		return false, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return false, fmt.Errorf("encode %s: %w", what, err)
	}
	object := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: content})
	if err := k.api.Apply(ctx, object, client.FieldOwner(FieldManager), client.ForceOwnership); err != nil {
		return false, fmt.Errorf("write %s: %w", what, err)
	}
	k.log.Info("written", "kind", want.GetObjectKind().GroupVersionKind().Kind, "name", want.GetName())
	return true, nil
}

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
