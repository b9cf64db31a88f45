package apiserver_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"warmpool.sh/test/harness/install"
	"warmpool.sh/test/harness/needs"
	"warmpool.sh/webhook/placement"
)

func needFieldData(t *testing.T) {
	t.Helper()
	var err error
	if fieldData == "" {
		err = errors.New("WARMPOOL_FIELD_DATA names no folder with objects recorded in real clusters (what it holds: test/integration/apiserver/main_test.go)")
	}
	needs.Check(t, needs.FieldData, err)
}

// Pods as a real Workspace controller and ReplicaSet controller made them.
func TestRealPods(t *testing.T) {
	needFieldData(t)
	objects, err := decodeFile(filepath.Join(fieldData, "workspace-pods.json"))
	require.NoError(t, err)
	require.NotEmpty(t, objects)
	u := newUser(t)
	for _, object := range objects {
		t.Run(object.GetGenerateName(), func(t *testing.T) {
			var pod corev1.Pod
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pod))
			pod.Namespace = ""
			o := u.create(t, u.namespace(t), &pod)
			pool, added := "spaces-cpu", ""
			if limit := pod.Spec.Containers[0].Resources.Limits[gpu]; !limit.IsZero() {
				pool, added = "spaces-gpu", gpuExists
			}
			requirement := fromYAML[corev1.NodeSelectorRequirement](t, `{key: karpenter.sh/nodepool, operator: In, values: [`+pool+`]}`)
			if o.spec.Affinity == nil {
				o.spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: make([]corev1.NodeSelectorTerm, 1)}}}
			}
			for i := range o.spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
				term := &o.spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[i]
				term.MatchExpressions = append(term.MatchExpressions, requirement)
			}
			o.spec.Tolerations = append(o.spec.Tolerations, tolerations(t, added)...)
			if image := pod.Spec.Containers[0].Image; image == "public.ecr.aws/sagemaker/sagemaker-distribution:3.2.0-cpu" { // its pool's template has it
				o.spec.Affinity.PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
					*placement.WarmFirst("overprovisioning", image),
				}}
			}
			o.same(t)
			assert.Empty(t, o.warnings)
		})
	}
}

// The real CRD of WorkspaceTemplates takes the place of the stand-in while warmpool runs, and the example's templates
// satisfy it.
func TestRealTemplateCRD(t *testing.T) {
	needFieldData(t)
	crd, err := decodeFile(filepath.Join(fieldData, "crds", "workspace.jupyter.org_workspacetemplates.yaml"))
	require.NoError(t, err)
	require.NoError(t, cp.Apply(t.Context(), crd...))
	root, err := install.Root()
	require.NoError(t, err)
	templates, err := decodeFile(filepath.Join(root, "manifests", "examples", "fine", "templates.yaml"))
	require.NoError(t, err)
	require.NoError(t, cp.Apply(t.Context(), templates...))
	u := newUser(t)
	require.NoError(t, u.create(t, u.namespace(t), workspacePod("gpu-a", gpu)).err)
	assert.NotContains(t, readLog(t, warmpool.Log), "cannot follow a kind")
}
