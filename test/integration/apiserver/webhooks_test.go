package apiserver_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, limit, step, what)
}

// both are warmpool's webhook configurations of placeholders.
func both() []client.Object {
	return []client.Object{&admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}}
}

// without takes webhook configurations of placeholders away until the test ends, or restore is called.
func without(t *testing.T, configurations ...client.Object) (restore func()) {
	t.Helper()
	u := newUser(t)
	ctx := context.Background() // also the cleanup's
	mutating, validating := true, true
	for _, configuration := range configurations {
		require.NoError(t, admin.Get(ctx, client.ObjectKey{Name: "warmpool"}, configuration))
		require.NoError(t, admin.Delete(ctx, configuration))
		_, isMutating := configuration.(*admissionregistrationv1.MutatingWebhookConfiguration)
		mutating, validating = mutating && !isMutating, validating && isMutating
	}
	restored := false
	restore = func() {
		if restored {
			return
		}
		restored = true
		for _, configuration := range configurations {
			require.NoError(t, admin.Create(ctx, asShipped(configuration)))
		}
		eventually(t, "the webhooks are back", func() bool { return u.mutated(ctx, t) && u.validated(ctx, t) })
	}
	t.Cleanup(restore)
	eventually(t, "the webhooks are gone", func() bool { return u.mutated(ctx, t) == mutating && u.validated(ctx, t) == validating })
	return restore
}

// asShipped has no caBundle: that is warmpool's to write.
func asShipped(object client.Object) client.Object {
	object.SetResourceVersion("")
	object.SetUID("")
	object.SetManagedFields(nil)
	switch configuration := object.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range configuration.Webhooks {
			configuration.Webhooks[i].ClientConfig.CABundle = nil
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range configuration.Webhooks {
			configuration.Webhooks[i].ClientConfig.CABundle = nil
		}
	}
	return object
}

// mutated reports whether both mutating webhooks answer.
func (u *user) mutated(ctx context.Context, t *testing.T) bool {
	t.Helper()
	pod, err := u.CoreV1().Pods("default").Create(ctx, workspacePod("cpu-a"), dryRun)
	if err != nil || pod.Spec.Affinity == nil {
		return false
	}
	d := placeholder(t, "cpu-a")
	d.Spec.Template.Spec.NodeSelector = map[string]string{"karpenter.sh/nodepool": "cpu-a"}
	d.Spec.Template.Spec.TerminationGracePeriodSeconds = nil
	got, err := u.AppsV1().Deployments("default").Create(ctx, d, dryRun)
	return err == nil && *got.Spec.Template.Spec.TerminationGracePeriodSeconds != corev1.DefaultTerminationGracePeriodSeconds
}

// validated reports whether the validating webhook answers.
func (u *user) validated(ctx context.Context, t *testing.T) bool {
	t.Helper()
	d := complete(t)
	d.Spec.Template.Spec.InitContainers[0].Command = nil
	_, err := u.AppsV1().Deployments("default").Create(ctx, d, dryRun)
	return apierrors.IsInvalid(err)
}
