package apiserver_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const classField = "spec.template.spec.priorityClassName"

func priorityClass(t *testing.T, class schedulingv1.PriorityClass) {
	t.Helper()
	require.NoError(t, admin.Create(t.Context(), &class))
	t.Cleanup(func() { assert.NoError(t, admin.Delete(cleanup, &class)) })
}

func TestPriorityClass(t *testing.T) {
	never, lower := corev1.PreemptNever, corev1.PreemptLowerPriority
	for _, class := range []schedulingv1.PriorityClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "test-zero"}, PreemptionPolicy: &never},
		{ObjectMeta: metav1.ObjectMeta{Name: "test-positive"}, Value: 100, PreemptionPolicy: &never},
		{ObjectMeta: metav1.ObjectMeta{Name: "test-other"}, Value: -10, PreemptionPolicy: &never},
		{ObjectMeta: metav1.ObjectMeta{Name: "test-preempting"}, Value: -10, PreemptionPolicy: &lower},
		{ObjectMeta: metav1.ObjectMeta{Name: "test-default-policy"}, Value: -10},
		{ObjectMeta: metav1.ObjectMeta{Name: "test-cut-off"}, Value: -33_554_432, PreemptionPolicy: &never},
		{ObjectMeta: metav1.ObjectMeta{Name: "test-above-cut-off"}, Value: -33_554_431, PreemptionPolicy: &never},
	} {
		priorityClass(t, class)
	}
	u := newUser(t)
	for _, c := range []struct{ name, sent, want, message string }{
		{name: "missing", want: "overprovisioning-placeholder"},
		{name: "the shipped one", sent: "overprovisioning-placeholder", want: "overprovisioning-placeholder"},
		{name: "another that is low enough", sent: "test-other", want: "test-other"},
		{name: "just above Karpenter's cut-off", sent: "test-above-cut-off", want: "test-above-cut-off"},
		{name: "as high as a Workspace", sent: "test-zero", message: "PriorityClass test-zero has value 0"},
		{name: "higher than a Workspace", sent: "test-positive", message: "PriorityClass test-positive has value 100"},
		{name: "preempts", sent: "test-preempting", message: "test-preempting"},
		{name: "preempts by default", sent: "test-default-policy", message: "preemptionPolicy"},
		{name: "at Karpenter's cut-off", sent: "test-cut-off", message: "-33554432"},
		{name: "of the system", sent: "system-node-critical", message: ""},
		{name: "absent", sent: "test-absent", message: "PriorityClass test-absent does not exist"},
	} {
		t.Run(c.name, func(t *testing.T) {
			// The classes are new: warmpool may not have seen them yet.
			eventually(t, "warmpool knows the PriorityClass", func() bool {
				d := complete(t)
				d.Spec.Template.Spec.PriorityClassName = c.sent
				_, err := u.AppsV1().Deployments("default").Create(t.Context(), d, dryRun)
				return err == nil == (c.want != "")
			})
			d := complete(t)
			d.Spec.Template.Spec.PriorityClassName = c.sent
			o := u.create(t, u.namespace(t), d)
			if c.want != "" {
				o.spec.PriorityClassName = c.want
				o.same(t)
				assert.Empty(t, o.warnings)
				return
			}
			require.True(t, apierrors.IsInvalid(o.err), "%v", o.err)
			require.ErrorContains(t, o.err, classField)
			require.ErrorContains(t, o.err, c.message)
		})
	}
}

// Workspaces name no class: they have the priority of the global default class where there is one.
func TestGlobalDefaultClass(t *testing.T) {
	u := newUser(t)
	require.NoError(t, u.create(t, u.namespace(t), complete(t)).err)
	never := corev1.PreemptNever
	class := schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "test-default"}, Value: -5000, GlobalDefault: true, PreemptionPolicy: &never}
	require.NoError(t, admin.Create(t.Context(), &class))
	admitted := func() bool {
		_, err := u.AppsV1().Deployments("default").Create(t.Context(), complete(t), dryRun)
		return err == nil
	}
	eventually(t, "warmpool knows the global default class", func() bool { return !admitted() })
	denied(t, u.create(t, u.namespace(t), complete(t)).err, cause{classField, "not below the Workspaces' -5000"})

	require.NoError(t, admin.Delete(t.Context(), &class))
	eventually(t, "warmpool knows that it is gone", admitted)
}
