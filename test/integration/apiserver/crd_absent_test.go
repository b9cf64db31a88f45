package apiserver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/test/harness/needs"
)

// Karpenter and jupyter-k8s may come later than warmpool: until then it serves by what it knows, and then it follows,
// without a restart.
func TestCRDsAbsentAtStart(t *testing.T) {
	needs.Check(t, needs.ControlPlane, controlplane.Ready(t.Context(), controlplane.Options{}))
	plane, err := controlplane.Start(t.Context(), controlplane.Options{Log: t.Output()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, plane.Stop()) })
	auditsNothing(t, plane)
	late, err := install.Up(t.Context(), plane, install.Options{WithoutCRDs: true})
	require.NoError(t, err)
	u := newUserOf(t, plane.Config)

	auditsWithoutKarpenter(t, plane)

	t.Run("before", func(t *testing.T) {
		for pool, devices := range map[string][]corev1.ResourceName{"cpu": nil, "gpu": {gpu}} {
			o := u.create(t, "default", workspacePod("", devices...))
			o.spec.Affinity = &corev1.Affinity{NodeAffinity: fromYAML[*corev1.NodeAffinity](t, requiredTerm(`{key: karpenter.sh/nodepool, operator: In, values: [spaces-`+pool+`]}`))}
			if pool == "gpu" {
				o.spec.Tolerations = append(o.spec.Tolerations, tolerations(t, gpuExists)...)
			}
			o.same(t)
			assert.Empty(t, o.warnings)
		}
		o := u.create(t, "overprovisioning", placeholder(t, "gpu", gpu))
		require.NoError(t, o.err, "nothing is denied for lack of facts")
		assert.Contains(t, strings.Join(o.warnings, "\n"), "no NodePool CRD (karpenter.sh) in the cluster")
		for _, warning := range o.warnings {
			assert.Contains(t, warning, ": not verified: ")
		}
		d := placeholder(t, "gpu", gpu)
		d.Spec.Template.Spec.Affinity = nil
		denied(t, u.create(t, "default", d).err, cause{antiAffinityField, ""})
	})

	answered := metricAt(t, late.MetricsURL, "warmpool_admissions_total")
	require.NoError(t, plane.Apply(t.Context(), lateObjects(t)...))
	eventually(t, "the NodePool's taints are followed", func() bool {
		pod, err := u.CoreV1().Pods("default").Create(t.Context(), workspacePod("", gpu), dryRun)
		require.NoError(t, err)
		return len(pod.Spec.Tolerations) == 4 && pod.Spec.Tolerations[3] == tolerations(t, `{key: dedicated, operator: Equal, value: notebooks, effect: NoSchedule}`)[0]
	})
	eventually(t, "WorkspaceTemplates are read", func() bool { return strings.Contains(readLog(t, late.Log), `kind="WorkspaceTemplate"`) })
	d := placeholder(t, "gpu", gpu)
	d.Namespace, d.Name = "overprovisioning", "after"
	eventually(t, "everything is verified", func() bool {
		u.warnings(t) // those of before
		_, err := u.AppsV1().Deployments(d.Namespace).Create(t.Context(), d, dryRun)
		require.NoError(t, err)
		return len(u.warnings(t)) == 0
	})

	// A restart would have begun to count anew.
	assert.GreaterOrEqual(t, metricAt(t, late.MetricsURL, "warmpool_admissions_total"), answered)
	assert.NoError(t, install.Get(t.Context(), late.HealthURL+"/readyz"))
	assert.NoError(t, checkLog(late.Log))
	log := readLog(t, late.Log)
	assert.LessOrEqual(t, strings.Count(log, "NodePool CRD"), 1, log)
	assert.LessOrEqual(t, strings.Count(log, "WorkspaceTemplate CRD"), 1, log)
	assert.NotContains(t, log, "cannot read")
	assert.Less(t, strings.Count(log, "\n"), 100, log)
}

// lateObjects are the CRDs, the example's NodePools, one with a taint more, and its templates.
func lateObjects(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	root, err := install.Root()
	require.NoError(t, err)
	objects, err := install.CRDs(root)
	require.NoError(t, err)
	if fieldData != "" {
		// The real CRD judges the example's templates too.
		fromField, err := decodeFile(filepath.Join(fieldData, "crds", "workspace.jupyter.org_workspacetemplates.yaml"))
		require.NoError(t, err)
		objects = append(objects[1:], fromField...)
	}
	for _, name := range []string{"cluster.yaml", "nodepools.yaml", "templates.yaml", "nodes.yaml", "daemonsets.yaml"} {
		more, err := decodeFile(filepath.Join(root, "manifests", "examples", "fine", name))
		require.NoError(t, err)
		for _, object := range more {
			if object.GetName() == "spaces-gpu" {
				taints, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "taints")
				require.NoError(t, err)
				taints = append(taints, map[string]any{"key": "dedicated", "value": "notebooks", "effect": "NoSchedule"})
				require.NoError(t, unstructured.SetNestedSlice(object.Object, taints, "spec", "template", "spec", "taints"))
			}
			if object.GetKind() != "HyperpodNodeClass" {
				objects = append(objects, object)
			}
		}
	}
	return objects
}

func readLog(t *testing.T, path string) string {
	t.Helper()
	log, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(log)
}
