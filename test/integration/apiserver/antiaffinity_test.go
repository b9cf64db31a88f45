package apiserver_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The pods' labels are {app: ph, tier: warm}. What does not keep them apart is refused, and never repaired silently.
func TestAntiAffinity(t *testing.T) {
	const host = `topologyKey: kubernetes.io/hostname, `
	required := func(terms string) string { return `{requiredDuringSchedulingIgnoredDuringExecution: [` + terms + `]}` }
	cases := []struct {
		name, antiAffinity string
		messages           []string // parts of the denial; none: admitted
	}{
		{"own labels", required(`{` + host + `labelSelector: {matchLabels: {app: ph, tier: warm}}}`), nil},
		{"an expression that holds", required(`{` + host + `labelSelector: {matchExpressions: [{key: tier, operator: In, values: [warm, hot]}]}}`), nil},
		{"empty selector matches all", required(`{` + host + `labelSelector: {}}`), nil},
		{"every namespace", required(`{` + host + `labelSelector: {matchLabels: {app: ph}}, namespaceSelector: {}}`), nil},
		{"the second of two terms", required(`{` + host + `labelSelector: {matchLabels: {app: web}}}, {` + host + `labelSelector: {matchLabels: {app: ph}}}`), nil},
		{"other value", required(`{` + host + `labelSelector: {matchLabels: {app: placeholder}}}`), []string{"app=placeholder", "app=ph,tier=warm"}},
		{"an expression that does not hold", required(`{` + host + `labelSelector: {matchExpressions: [{key: app, operator: NotIn, values: [ph]}]}}`), []string{"app notin (ph)", "app=ph,tier=warm"}},
		{"null selector matches nothing", required(`{` + host + `labelSelector: null}`), []string{"labelSelector is null"}},
		{"another namespace", required(`{` + host + `labelSelector: {matchLabels: {app: ph}}, namespaces: [other]}`), []string{"other"}},
		{"zone", required(`{topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: ph}}}`), []string{"topology.kubernetes.io/zone", "kubernetes.io/hostname"}},
		{"a label that no node has", required(`{topologyKey: topology.kubernetes.io/hostname, labelSelector: {matchLabels: {app: ph}}}`), []string{`"topology.kubernetes.io/hostname"`}},
		{"label of the Deployment", required(`{` + host + `labelSelector: {matchLabels: {app: spaces-overprovisioning}}}`), []string{"app=spaces-overprovisioning", "app=ph,tier=warm"}},
		{"preferred only", `{preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, podAffinityTerm: {` + host + `labelSelector: {matchLabels: {app: ph}}}}]}`, []string{"preferred"}},
		{"none", `null`, []string{""}},
		{"empty", `{}`, []string{""}},
		{"no term of two", required(`{` + host + `labelSelector: {matchLabels: {app: web}}}, {` + host + `labelSelector: null}`), []string{"app=web", "labelSelector is null"}},
		{"other revisions only", required(`{` + host + `labelSelector: {matchLabels: {app: ph}}, mismatchLabelKeys: [tier]}`), []string{"mismatchLabelKeys"}},
		{"own revision only", required(`{` + host + `labelSelector: {matchLabels: {app: ph}}, matchLabelKeys: [pod-template-hash]}`), []string{"pod-template-hash"}},
	}
	u := newUser(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			namespace := u.namespace(t)
			d := complete(t)
			d.Spec.Template.Spec.Affinity.PodAntiAffinity = fromYAML[*corev1.PodAntiAffinity](t, c.antiAffinity)
			o := u.create(t, namespace, d)
			assert.Empty(t, o.warnings)
			if c.messages == nil {
				o.same(t)
				return
			}
			for _, message := range c.messages {
				denied(t, o.err, cause{antiAffinityField, message})
			}
			_, err := u.AppsV1().Deployments(namespace).Get(t.Context(), d.Name, metav1.GetOptions{})
			assert.True(t, apierrors.IsNotFound(err), "%v", err)
		})
	}
}

// The sample of the Kubernetes documentation, from which users start.
func TestOfficialSample(t *testing.T) {
	d := complete(t)
	d.Spec.Selector.MatchLabels = map[string]string{"app.kubernetes.io/name": "capacity-placeholder"}
	d.Spec.Template.Labels = map[string]string{"app.kubernetes.io/name": "capacity-placeholder"}
	d.Spec.Template.Spec.Affinity.PodAntiAffinity = fromYAML[*corev1.PodAntiAffinity](t, `
preferredDuringSchedulingIgnoredDuringExecution:
- weight: 100
  podAffinityTerm: {topologyKey: topology.kubernetes.io/hostname, labelSelector: {matchLabels: {app: placeholder}}}
`)
	u := newUser(t)
	o := u.create(t, u.namespace(t), d)
	denied(t, o.err, cause{antiAffinityField, "preferred"})

	anti := d.Spec.Template.Spec.Affinity.PodAntiAffinity
	anti.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{anti.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm}
	anti.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey = "kubernetes.io/hostname"
	o = u.create(t, u.namespace(t), d)
	denied(t, o.err, cause{antiAffinityField, `app.kubernetes.io/name=capacity-placeholder`})
}
