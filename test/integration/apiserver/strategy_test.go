package apiserver_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const filledStrategy = `{type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}`

// By the time of admission the API server has put its defaults in: what equals them counts as not set.
func TestStrategy(t *testing.T) {
	cases := []struct{ name, sent, want, warning string }{
		{name: "none", sent: `{}`, want: filledStrategy},
		{name: "type only", sent: `{type: RollingUpdate}`, want: filledStrategy},
		{name: "the default written out", sent: `{type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}`, want: filledStrategy},
		{name: "as it should be", sent: filledStrategy, want: filledStrategy},
		{name: "Recreate", sent: `{type: Recreate}`, want: `{type: Recreate}`},
		{name: "more at a time", sent: `{type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 50%}}`,
			want: `{type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 50%}}`},
		{name: "surge", sent: `{type: RollingUpdate, rollingUpdate: {maxSurge: 2, maxUnavailable: 0}}`,
			want: `{type: RollingUpdate, rollingUpdate: {maxSurge: 2, maxUnavailable: 0}}`, warning: "placeholder-rollout: …2 for 3 replicas"},
		{name: "surge in percent", sent: `{type: RollingUpdate, rollingUpdate: {maxSurge: 50%, maxUnavailable: 0}}`,
			want: `{type: RollingUpdate, rollingUpdate: {maxSurge: 50%, maxUnavailable: 0}}`, warning: "placeholder-rollout: …2 for 3 replicas"},
		{name: "default surge beside a choice", sent: `{type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}`,
			want: `{type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 1}}`, warning: "placeholder-rollout: …1 for 3 replicas"},
	}
	u := newUser(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := complete(t)
			d.Spec.Strategy = fromYAML[appsv1.DeploymentStrategy](t, c.sent)
			o := u.create(t, u.namespace(t), d)
			want, ok := o.want.(*appsv1.Deployment)
			require.True(t, ok)
			want.Spec.Strategy = fromYAML[appsv1.DeploymentStrategy](t, c.want)
			o.same(t)
			if c.warning == "" {
				assert.Empty(t, o.warnings)
			} else {
				warned(t, o.warnings, c.warning)
			}
		})
	}
}

// At an update, too, what equals the default is filled, and what somebody chose is kept.
func TestStrategyOfAnUpdate(t *testing.T) {
	u := newUser(t)
	o := u.create(t, u.namespace(t), complete(t))
	require.NoError(t, o.err)
	d, ok := o.got.(*appsv1.Deployment)
	require.True(t, ok)
	quarter, two := intstr.FromString("25%"), intstr.FromInt32(2)
	for _, step := range []struct {
		sent appsv1.RollingUpdateDeployment
		want string
	}{
		{appsv1.RollingUpdateDeployment{MaxSurge: &two, MaxUnavailable: &two}, `{type: RollingUpdate, rollingUpdate: {maxSurge: 2, maxUnavailable: 2}}`},
		{appsv1.RollingUpdateDeployment{MaxSurge: &quarter, MaxUnavailable: &quarter}, filledStrategy},
	} {
		d.Spec.Strategy.RollingUpdate = &step.sent
		got, err := u.AppsV1().Deployments(d.Namespace).Update(t.Context(), d, metav1.UpdateOptions{})
		require.NoError(t, err)
		assert.Equal(t, fromYAML[appsv1.DeploymentStrategy](t, step.want), got.Spec.Strategy)
		d = got
	}
}

// All that is filled at once, in a placeholder that says no more than it must, also where parents are absent.
func TestFill(t *testing.T) {
	u := newUser(t)
	for name, annotations := range map[string]map[string]string{
		"no annotations":    nil,
		"other annotations": {"a/b": "x", "example.com/c.d_e": "y~z/"},
	} {
		t.Run(name, func(t *testing.T) {
			d := complete(t)
			d.Spec.Strategy = appsv1.DeploymentStrategy{}
			template := &d.Spec.Template
			template.Annotations = annotations
			template.Spec.PriorityClassName, template.Spec.TerminationGracePeriodSeconds = "", nil
			template.Spec.Affinity.NodeAffinity, template.Spec.Tolerations = nil, nil
			o := u.create(t, u.namespace(t), d)
			want := complete(t)
			maps.Copy(want.Spec.Template.Annotations, annotations)
			// The unseen one of a complete placeholder is what a filled one must look like.
			sameObject(t, u.create(t, u.namespace(t), want).want, o.got)
			require.NoError(t, o.err)
			assert.Empty(t, o.warnings)
		})
	}
}

// A chosen value is never replaced.
func TestFillKeepsWhatWasChosen(t *testing.T) {
	u := newUser(t)
	seconds := int64(10)
	cases := []struct {
		name    string
		choose  func(*corev1.PodTemplateSpec)
		warning string
	}{
		{"grace period", func(p *corev1.PodTemplateSpec) { p.Spec.TerminationGracePeriodSeconds = &seconds }, "placeholder-grace-period: …10"},
		{"do-not-disrupt for a time", func(p *corev1.PodTemplateSpec) { p.Annotations["karpenter.sh/do-not-disrupt"] = "4h" }, "placeholder-do-not-disrupt: …4h"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := complete(t)
			c.choose(&d.Spec.Template)
			o := u.create(t, u.namespace(t), d)
			o.same(t)
			warned(t, o.warnings, c.warning)
		})
	}
}
