package policy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/prepull"
)

const oneTemplate = `
apiVersion: config.warmpool.sh/v1alpha1
kind: WarmPoolConfiguration
pools:
- {name: cpu, nodePools: [cpu-a], templates: [{namespace: shared, name: cpu}]}
`

func pulling(image string) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	d.Labels = map[string]string{"warmpool.sh/pool": "cpu"}
	d.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: prepull.Name, Image: image}}
	return d
}

func templateEvaluator(t *testing.T, templates cluster.Facts[cluster.WorkspaceTemplate]) *policy.Evaluator {
	t.Helper()
	cfg, err := config.Load([]byte(oneTemplate), policy.IDs())
	require.NoError(t, err)
	return evaluatorOf(t, cfg, &cluster.Snapshot{Templates: templates})
}

// imageOf is the image as admitted, and the rule's findings.
func imageOf(e *policy.Evaluator, o *policy.Object) (image string, findings []policy.Finding) {
	e.Mutate(o)
	for _, f := range append(o.Replaced(), e.Check(o)...) {
		if f.Rule.ID == "placeholder-image" {
			findings = append(findings, f)
		}
	}
	return o.Spec.InitContainers[0].Image, findings
}

// Without the CRD, or the right to read it, nothing is known about any template: that is not the same as none.
func TestTemplatesNotRead(t *testing.T) {
	e := templateEvaluator(t, cluster.Unknown[cluster.WorkspaceTemplate]("no WorkspaceTemplate CRD in the cluster"))
	image, findings := imageOf(e, e.Placeholder(pulling("r/nb:0"), "warm"))
	assert.Equal(t, "r/nb:0", image)
	assert.Equal(t, `Warn, info: spec.template.spec.initContainers: Forbidden: not verified: images: WorkspaceTemplates: no WorkspaceTemplate CRD in the cluster
  Fix: Check it by hand, or make the missing facts readable.
`, printFindings(findings))

	// Even an update of a synced placeholder then passes.
	old := pulling("r/nb:1")
	old.Annotations = prepull.Record{{Template: config.TemplateRef{Namespace: "shared", Name: "cpu"}, Image: "r/nb:1"}}.Annotations()
	image, _ = imageOf(e, e.Placeholder(pulling("r/nb:0"), "warm").Updates(old))
	assert.Equal(t, "r/nb:0", image)
}

func TestTemplateThatCannotBeRead(t *testing.T) {
	e := templateEvaluator(t, cluster.Known[cluster.WorkspaceTemplate](nil).WithMalformed(map[string]string{"shared/cpu": "spec.defaultImage must be a string"}))
	image, findings := imageOf(e, e.Placeholder(pulling("r/nb:0"), "warm"))
	assert.Equal(t, "r/nb:0", image)
	require.Len(t, findings, 1)
	assert.Equal(t, "WorkspaceTemplate shared/cpu cannot be read: spec.defaultImage must be a string", findings[0].Error.Detail)
}

// What warmpool replaces is never denied, whatever the action: it is set right already.
func TestReplacedImagesAreNoDenial(t *testing.T) {
	cfg, err := config.Load([]byte(oneTemplate+"rules: {placeholder-image: Deny}\n"), policy.IDs())
	require.NoError(t, err)
	e := evaluatorOf(t, cfg, &cluster.Snapshot{Templates: cluster.Known(map[string]*cluster.WorkspaceTemplate{"shared/cpu": {DefaultImage: "r/nb:1"}})})
	image, findings := imageOf(e, e.Placeholder(pulling("r/nb:0"), "warm"))
	assert.Equal(t, "r/nb:1", image)
	require.Len(t, findings, 1)
	assert.Equal(t, config.Warn, findings[0].Action)
}
