package apiserver_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const commandField = "spec.template.spec.initContainers[0].command"

// old is a placeholder that came before warmpool: no anti-affinity, a pre-pull container without a command, and a
// finalizer.
func old(t *testing.T, u *user, edit ...func(*appsv1.Deployment)) *appsv1.Deployment {
	t.Helper()
	restore := without(t, both()...)
	defer restore()
	d := complete(t)
	d.Finalizers = []string{"example.com/keep"}
	d.Spec.Template.Spec.Affinity.PodAntiAffinity = nil
	d.Spec.Template.Spec.InitContainers[0].Command = nil
	for _, change := range edit {
		change(d)
	}
	d, err := u.AppsV1().Deployments(u.namespace(t)).Create(t.Context(), d, metav1.CreateOptions{})
	require.NoError(t, err)
	return d
}

// Old faults must not stand in the way of labels, finalizers, scaling down, and repair step by step. New ones do.
func TestUpdatesOfOldViolations(t *testing.T) {
	u := newUser(t)
	faulty := old(t, u)
	both := []string{"placeholder-anti-affinity: ", "placeholder-pull-command: "}
	three, zero := int32(3), int32(0)
	cases := []struct {
		name     string
		edit     func(*appsv1.Deployment)
		causes   []cause
		warnings []string
	}{
		{"b: label", func(d *appsv1.Deployment) { d.Labels["team"] = "a" }, nil, both},
		{"b: annotation", func(d *appsv1.Deployment) { d.Annotations = map[string]string{"a/b": "c"} }, nil, both},
		{"c: scale to 0", func(d *appsv1.Deployment) { d.Spec.Replicas = &zero }, nil, both},
		{"c: a new fault at 0", func(d *appsv1.Deployment) {
			d.Spec.Template.Annotations["karpenter.sh/do-not-disrupt"] = "yes"
		}, []cause{{"spec.template.metadata.annotations[karpenter.sh/do-not-disrupt]", `"yes"`}}, both},
		{"c: from 0 with the old faults", func(d *appsv1.Deployment) { d.Spec.Replicas = &three },
			[]cause{{antiAffinityField, ""}, {commandField, "pull-workspace-image"}}, nil},
		{"d: one more container without command", func(d *appsv1.Deployment) {
			second := d.Spec.Template.Spec.InitContainers[0]
			second.Name = "pull-workspace-image-2"
			d.Spec.Template.Spec.InitContainers = append([]corev1.Container{second}, d.Spec.Template.Spec.InitContainers...)
		}, []cause{{commandField, "pull-workspace-image-2"}}, both},
		{"d: one more fault of another rule", func(d *appsv1.Deployment) {
			d.Spec.Template.Annotations["karpenter.sh/do-not-disrupt"] = "yes"
		}, []cause{{"spec.template.metadata.annotations[karpenter.sh/do-not-disrupt]", `"yes"`}}, both},
		{"e: one of two repaired", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.InitContainers[0].Command = []string{"true"}
		}, nil, both[:1]},
		{"e: the other repaired, and the first back", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Affinity.PodAntiAffinity = complete(t).Spec.Template.Spec.Affinity.PodAntiAffinity
			d.Spec.Template.Spec.InitContainers[0].Command = nil
		}, []cause{{commandField, "pull-workspace-image"}}, nil},
		{"e: the other repaired", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Affinity.PodAntiAffinity = complete(t).Spec.Template.Spec.Affinity.PodAntiAffinity
		}, nil, nil},
		{"d: the first back", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Affinity.PodAntiAffinity = nil
		}, []cause{{antiAffinityField, ""}}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			edited := faulty.DeepCopy()
			c.edit(edited)
			u.warnings(t)
			got, err := u.AppsV1().Deployments(faulty.Namespace).Update(t.Context(), edited, metav1.UpdateOptions{})
			warned(t, u.warnings(t), c.warnings...)
			if c.causes != nil {
				denied(t, err, c.causes...)
				return
			}
			require.NoError(t, err)
			edited.Generation = got.Generation
			sameObject(t, edited, got)
			faulty = got
		})
	}
}

// A worse measure of an old fault is a new fault.
func TestWorseIsDenied(t *testing.T) {
	u := newUser(t)
	never := corev1.PreemptNever
	for name, value := range map[string]int32{"test-high": 5, "test-higher": 10} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, PreemptionPolicy: &never}
		require.NoError(t, admin.Create(t.Context(), class))
		t.Cleanup(func() { assert.NoError(t, admin.Delete(cleanup, class)) })
	}
	d := old(t, u, func(d *appsv1.Deployment) {
		*d = *complete(t)
		d.Spec.Template.Spec.PriorityClassName = "test-high"
	})
	d.Labels["team"] = "a"
	u.warnings(t)
	d, err := u.AppsV1().Deployments(d.Namespace).Update(t.Context(), d, metav1.UpdateOptions{})
	require.NoError(t, err)
	warned(t, u.warnings(t), "placeholder-priority: …test-high")

	worse := d.DeepCopy()
	worse.Spec.Template.Spec.PriorityClassName = "test-higher"
	eventually(t, "the class is known", func() bool {
		_, err = u.AppsV1().Deployments(d.Namespace).Update(t.Context(), worse, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil
	})
	_, err = u.AppsV1().Deployments(d.Namespace).Update(t.Context(), worse, metav1.UpdateOptions{})
	denied(t, err, cause{"spec.template.spec.priorityClassName", "test-higher has value 10"})
}

func TestDeletion(t *testing.T) {
	u := newUser(t)
	d := old(t, u)
	deployments := u.AppsV1().Deployments(d.Namespace)
	require.NoError(t, deployments.Delete(t.Context(), d.Name, metav1.DeleteOptions{}))
	d, err := deployments.Get(t.Context(), d.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.NotNil(t, d.DeletionTimestamp)
	neverAsked(t, func() {
		d.Labels["going"] = time.Now().Format("2006")
		d, err = deployments.Update(t.Context(), d, metav1.UpdateOptions{})
		require.NoError(t, err)
		d.Finalizers = nil
		_, err = deployments.Update(t.Context(), d, metav1.UpdateOptions{})
		require.NoError(t, err)
	})
	_, err = deployments.Get(t.Context(), d.Name, metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
}

// What was a placeholder is judged as one: taking its marks off does not take the rules off.
func TestPlaceholderLosesItsMarks(t *testing.T) {
	u := newUser(t)
	o := u.create(t, u.namespace(t), complete(t))
	require.NoError(t, o.err)
	d, ok := o.got.(*appsv1.Deployment)
	require.True(t, ok)
	deployments := u.AppsV1().Deployments(d.Namespace)

	all := d.DeepCopy()
	all.Labels = nil
	all.Spec.Template.Spec.PriorityClassName = ""
	all.Spec.Template.Spec.Affinity.PodAntiAffinity = nil
	_, err := deployments.Update(t.Context(), all, metav1.UpdateOptions{})
	denied(t, err, cause{antiAffinityField, ""}, cause{"spec.template.spec.priorityClassName", ""})

	delete(d.Labels, poolLabel)
	u.warnings(t)
	got, err := deployments.Update(t.Context(), d, metav1.UpdateOptions{})
	require.NoError(t, err)
	assert.Empty(t, u.warnings(t), "its node affinity still names its pool")
	sameObject(t, d, got)
}
