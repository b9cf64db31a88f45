// Package examples_test audits the example clusters where they are really there: on an API server, and in a folder that
// kubectl fills from it.
package examples_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/test/harness/needs"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

// Kinds that the examples have and no API server knows by itself, beside those of install.CRDs.
const crds = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: hyperpodnodeclasses.karpenter.sagemaker.amazonaws.com}
spec:
  group: karpenter.sagemaker.amazonaws.com
  scope: Cluster
  names: {kind: HyperpodNodeClass, plural: hyperpodnodeclasses}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: capacitybuffers.autoscaling.x-k8s.io, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: autoscaling.x-k8s.io
  scope: Namespaced
  names: {kind: CapacityBuffer, plural: capacitybuffers}
  versions: [{name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: v1
kind: Namespace
metadata: {name: warmpool-system}
`

// A live audit and the audit of what kubectl exports from the same cluster find the same. Of every rule that is one
// finding in the broken example, and none in the other one.
func TestLiveAndExportedAreAuditedAlike(t *testing.T) {
	root, err := install.Root()
	require.NoError(t, err)
	binary, err := install.Build(t.Context(), root, t.TempDir())
	require.NoError(t, err)
	for example, want := range map[string][]string{"broken": policy.IDs(), "fine": nil} {
		t.Run(example, func(t *testing.T) {
			needs.Check(t, needs.ControlPlane, controlplane.Ready(t.Context(), controlplane.Options{}))
			cp, err := controlplane.Start(t.Context(), controlplane.Options{Log: t.Output()})
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, cp.Stop()) })
			furnish(t, cp, root, filepath.Join(root, "manifests", "examples", example))
			live := audit(t, binary, "--kubeconfig", cp.Kubeconfig)
			exported := filepath.Join(t.TempDir(), "exported.yaml")
			require.NoError(t, os.WriteFile(exported, []byte(export(t, cp)), 0o600))
			assert.Equal(t, audit(t, binary, "-f", exported, "--complete"), live)
			assert.ElementsMatch(t, want, live.rules())
		})
	}
}

// furnish makes an example cluster on an API server. The webhooks come last: nobody answers them.
func furnish(t *testing.T, cp *controlplane.ControlPlane, root, folder string) {
	t.Helper()
	kinds, err := install.CRDs(root)
	require.NoError(t, err)
	require.NoError(t, cp.Apply(t.Context(), slices.Concat(kinds, decode(t, []byte(crds)))...))
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	require.NoError(t, err)
	var first, pods, last []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, object := range decode(t, text) {
			switch object.GetKind() {
			case "Namespace", "PriorityClass": // others need them
				require.NoError(t, cp.Apply(t.Context(), object))
			case "Pod":
				pods = append(pods, object)
			case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
				last = append(last, trusting(t, object, cp.Config.CAData))
			case config.Kind:
				first = append(first, configMapOf(t, text))
			default:
				first = append(first, object)
			}
		}
	}
	require.NoError(t, cp.Apply(t.Context(), first...))
	for _, pod := range pods {
		// Admission learns of a new PriorityClass or ServiceAccount a little later.
		require.EventuallyWithT(t, func(c *assert.CollectT) { assert.NoError(c, cp.Apply(t.Context(), pod)) }, time.Minute, 100*time.Millisecond)
	}
	for _, object := range slices.Concat(first, pods) {
		setStatus(t, cp, object)
		scale(t, cp, object)
	}
	require.NoError(t, cp.Apply(t.Context(), last...))
}

// trusting writes the caBundle, as warmpool does in a cluster.
func trusting(t *testing.T, object *unstructured.Unstructured, bundle []byte) *unstructured.Unstructured {
	t.Helper()
	webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	require.NoError(t, err)
	encoded, err := json.Marshal(bundle)
	require.NoError(t, err)
	for _, webhook := range webhooks {
		entry, ok := webhook.(map[string]any)
		require.True(t, ok)
		require.NoError(t, unstructured.SetNestedField(entry, strings.Trim(string(encoded), `"`), "clientConfig", "caBundle"))
	}
	require.NoError(t, unstructured.SetNestedSlice(object.Object, webhooks, "webhooks"))
	return object
}

// configMapOf is where a cluster has its configuration.
func configMapOf(t *testing.T, configuration []byte) *unstructured.Unstructured {
	t.Helper()
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "warmpool-config", "namespace": "warmpool-system"},
		"data":     map[string]any{"warmpool.yaml": string(configuration)},
	})
	require.NoError(t, err)
	return decode(t, text)[0]
}

// setStatus writes what an API server does not take with the rest of an object.
func setStatus(t *testing.T, cp *controlplane.ControlPlane, object *unstructured.Unstructured) {
	t.Helper()
	status, ok := object.Object["status"]
	if !ok || !slices.Contains([]string{"Node", "Pod", "NodePool"}, object.GetKind()) {
		return
	}
	direct, err := client.New(cp.Config, client.Options{})
	require.NoError(t, err)
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(object.GroupVersionKind())
	require.NoError(t, direct.Get(t.Context(), client.ObjectKeyFromObject(object), there))
	there.Object["status"] = status
	require.NoError(t, direct.Status().Update(t.Context(), there))
}

// scale sets the replicas that a placeholder leaves to its autoscaler, which does not run here, to its min.
func scale(t *testing.T, cp *controlplane.ControlPlane, object *unstructured.Unstructured) {
	t.Helper()
	_, set, err := unstructured.NestedFieldNoCopy(object.Object, "spec", "replicas")
	require.NoError(t, err)
	if object.GetKind() != "Deployment" || object.GetLabels()["warmpool.sh/pool"] == "" || set {
		return
	}
	_, _, err = cp.Kubectl(t.Context(), "", "scale", "deployment", object.GetName(), "-n", object.GetNamespace(), "--replicas=2")
	require.NoError(t, err)
}

// export is everything that can be listed, as a folder of manifests would have it.
func export(t *testing.T, cp *controlplane.ControlPlane) string {
	t.Helper()
	names, _, err := cp.Kubectl(t.Context(), "", "api-resources", "--verbs=list", "-o", "name")
	require.NoError(t, err)
	resources := slices.DeleteFunc(strings.Fields(names), func(name string) bool { return name == "componentstatuses" })
	text, _, err := cp.Kubectl(t.Context(), "", "get", strings.Join(resources, ","), "-A", "-o", "yaml")
	require.NoError(t, err)
	return text
}

type report struct {
	Summary  map[string]int
	Findings []map[string]string
}

func (r report) rules() []string {
	var ids []string
	for _, finding := range r.Findings {
		ids = append(ids, finding["rule"])
	}
	return ids
}

func audit(t *testing.T, binary string, args ...string) report {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, append([]string{"audit", "-o", "json", "--fail-on", "none"}, args...)...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	require.NoError(t, err, complaints.String())
	assert.Empty(t, complaints.String(), "notes")
	var r report
	require.NoError(t, json.Unmarshal(out, &r))
	require.NotEmpty(t, r.Summary)
	return r
}

func decode(t *testing.T, text []byte) []*unstructured.Unstructured {
	t.Helper()
	objects, err := controlplane.Decode(bytes.NewReader(text))
	require.NoError(t, err)
	return objects
}
