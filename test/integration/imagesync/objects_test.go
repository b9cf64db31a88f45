package imagesync_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/controlplane"
)

const pull = "pull-workspace-image"

// manifest is a placeholder as a user would write it, complete but for the strategy, which warmpool fills.
func manifest(pool, image string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
  namespace: overprovisioning
  labels: {app: spaces-overprovisioning, warmpool.sh/pool: %[1]s}
spec:
  replicas: 1
  selector: {matchLabels: {placeholder: %[1]s}}
  template:
    metadata:
      labels: {placeholder: %[1]s}
      annotations: {karpenter.sh/do-not-disrupt: "true"}
    spec:
      priorityClassName: overprovisioning-placeholder
      terminationGracePeriodSeconds: 0
      automountServiceAccountToken: false
      enableServiceLinks: false
      nodeSelector: {example.com/pool: %[1]s}
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - topologyKey: kubernetes.io/hostname
            labelSelector: {matchLabels: {placeholder: %[1]s}}
      securityContext: {runAsNonRoot: true, runAsUser: 65534, seccompProfile: {type: RuntimeDefault}}
      initContainers:
      - name: pull-workspace-image
        image: %[2]s
        imagePullPolicy: IfNotPresent
        command: [sh, -c, echo pre-pulled]
        resources: {requests: {cpu: 10m, memory: 64Mi}, limits: {cpu: 10m, memory: 64Mi}}
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
      containers:
      - name: pause
        image: registry.k8s.io/pause:3.10.1
        imagePullPolicy: IfNotPresent
        resources: {requests: {cpu: "2", memory: 8Gi}, limits: {cpu: "2", memory: 8Gi}}
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`, pool, image)
}

// named is the same manifest under another name.
func named(text, name string) string {
	return strings.Replace(text, "  name: ", "  name: "+name+" #", 1)
}

// replaced changes a part of a manifest that must be there.
func replaced(t *testing.T, text, old, with string) string {
	t.Helper()
	require.Contains(t, text, old)
	return strings.ReplaceAll(text, old, with)
}

// withInit is the manifest with other init containers, in YAML.
func withInit(t *testing.T, text, containers string) string {
	t.Helper()
	before, rest, ok := strings.Cut(text, "      initContainers:\n")
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, "      containers:\n")
	require.True(t, ok)
	return before + "      initContainers:\n" + containers + "      containers:\n" + after
}

func (c *cluster) apply(t *testing.T, text string) {
	t.Helper()
	objects, err := controlplane.Decode(strings.NewReader(text))
	require.NoError(t, err)
	require.NoError(t, c.Apply(t.Context(), objects...))
}

// setImage makes the template have this default image, and makes the template where there is none.
func (c *cluster) setImage(t *testing.T, template, image string) {
	t.Helper()
	c.apply(t, templateText("v1alpha1", template, fmt.Sprintf("{defaultImage: %q}", image)))
}

func templateText(version, name, spec string) string {
	return fmt.Sprintf("{apiVersion: workspace.jupyter.org/%s, kind: WorkspaceTemplate, metadata: {namespace: %s, name: %s}, spec: %s}", version, templates, name, spec)
}

func template(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "workspace.jupyter.org", Version: "v1alpha1", Kind: "WorkspaceTemplate"})
	object.SetNamespace(templates)
	object.SetName(name)
	return object
}

func (c *cluster) patchTemplate(t *testing.T, name, patch string) {
	t.Helper()
	require.NoError(t, c.admin.Patch(t.Context(), template(name), merge(patch)))
}

// deployment reads a placeholder.
func (c *cluster) deployment(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	var d appsv1.Deployment
	require.NoError(t, c.admin.Get(t.Context(), client.ObjectKey{Namespace: placeholders, Name: name}, &d))
	return &d
}

func (c *cluster) patchDeployment(t *testing.T, name, patch string) {
	t.Helper()
	require.NoError(t, c.admin.Patch(t.Context(), c.deployment(t, name), merge(patch)))
}
