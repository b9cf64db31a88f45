package deploy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
)

const workspace = `
apiVersion: v1
kind: Pod
metadata:
  name: notebook
  namespace: team
  labels: {workspace.jupyter.org/workspace-name: notebook}
spec:
  containers: [{name: workspace, image: registry.example/notebook:1}]
`

// overlay is one for a warmpool that runs as a process here and serves on the port.
func overlay(t *testing.T, name string) (dir string, shipped []*unstructured.Unstructured, port int) {
	t.Helper()
	shipped, err := install.Render(filepath.Join(root, "manifests", "overlays", name))
	require.NoError(t, err)
	port, err = controlplane.FreePort()
	require.NoError(t, err)
	objects, err := install.Localize(shipped, port)
	require.NoError(t, err)
	for _, object := range shipped {
		if object.GetKind() == "Deployment" && object.GetName() == install.Deployment {
			objects = append(objects, object)
		}
	}
	dir = t.TempDir()
	var all strings.Builder
	for _, object := range objects {
		document, err := yaml.Marshal(object.Object)
		require.NoError(t, err)
		all.WriteString("---\n" + string(document))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "all.yaml"), []byte(all.String()), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte("resources: [all.yaml]\n"), 0o600))
	return dir, shipped, port
}

func deploy(t *testing.T, dir string) {
	t.Helper()
	out, err := makeTarget(t.Context(), "deploy", "IMG="+image, "OVERLAY="+dir)
	require.NoError(t, err, out)
}

func undeploy(t *testing.T, dir string) string {
	t.Helper()
	out, err := makeTarget(t.Context(), "undeploy", "OVERLAY="+dir)
	require.NoError(t, err)
	return out
}

// inventory names everything in the cluster but what comes and goes by itself.
func inventory(t *testing.T) []string {
	t.Helper()
	var kinds []string
	for kind := range strings.FieldsSeq(cluster(t, "api-resources", "--verbs=list,delete", "-o", "name")) {
		if !strings.HasPrefix(kind, "events") && kind != "leases.coordination.k8s.io" && kind != "certificatesigningrequests.certificates.k8s.io" {
			kinds = append(kinds, kind)
		}
	}
	template := `{{range .items}}{{.kind}} {{.metadata.namespace}}/{{.metadata.name}} {{.metadata.uid}}{{"\n"}}{{end}}`
	all := strings.Split(cluster(t, "get", strings.Join(kinds, ","), "-A", "-o", "go-template="+template), "\n")
	slices.Sort(all)
	return all
}

// versions tells of each shipped object how often its specification was written.
func versions(t *testing.T, dir string) map[string]any {
	t.Helper()
	var list struct {
		Items []metav1.PartialObjectMetadata `json:"items"`
	}
	require.NoError(t, json.Unmarshal([]byte(cluster(t, "get", "-f", filepath.Join(dir, "all.yaml"), "-o", "json")), &list))
	found := map[string]any{}
	for _, item := range list.Items {
		name := item.Kind + " " + item.Namespace + "/" + item.Name
		found[name] = item.Generation
		if item.Generation == 0 {
			found[name] = item.ResourceVersion
		}
	}
	return found
}

func TestDeployAndUndeploy(t *testing.T) {
	dir, shipped, port := overlay(t, "embedded")
	apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n")
	apply(t, workspace)
	require.Eventually(t, func() bool { // the controllers fill new namespaces a moment later
		out, _, err := cp.Kubectl(t.Context(), "", "get", "-n", "team", "configmap/kube-root-ca.crt", "serviceaccount/default")
		return err == nil && out != ""
	}, limit, step)
	before := inventory(t)

	deploy(t, dir)
	assert.Equal(t, image, cluster(t, "get", "deployment", "-n", install.Namespace, install.Deployment, "-o", "jsonpath={.spec.template.spec.containers[0].image}"))
	process, err := install.Start(t.Context(), cp, binary, shipped, port)
	require.NoError(t, err)
	written := []string{"get", "-n", install.Namespace, "secret/warmpool-ca", "lease/warmpool", "-o", "name"}
	require.Eventually(t, func() bool {
		_, _, err := cp.Kubectl(t.Context(), "", written...)
		return err == nil
	}, limit, step, "what warmpool itself writes")

	rights(t)
	first := versions(t, dir)
	assert.Len(t, first, len(shipped))
	deploy(t, dir)
	assert.Equal(t, first, versions(t, dir), "the second time nothing changes")
	assert.NotEqual(t, before, inventory(t))

	undeploy(t, dir)
	assert.Equal(t, before, inventory(t), "nothing is left, and the others' objects are the same")
	_, _, err = cp.Kubectl(t.Context(), "", written...)
	require.ErrorContains(t, err, "not found")
	if err := process.Kill(); err != nil { // without its Lease it may have ended by itself
		require.ErrorIs(t, err, os.ErrProcessDone)
	}
	undeploy(t, dir)
	assert.Equal(t, before, inventory(t), "undeploying twice does no harm")
}

// rights asks the cluster what SECURITY.md says that one may ask, and compares the answers.
func rights(t *testing.T) {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	require.NoError(t, err)
	asked := 0
	for line := range strings.Lines(string(doc)) {
		question, answer, found := strings.Cut(strings.TrimSpace(line), " # ")
		if !found || !strings.HasPrefix(question, "kubectl auth can-i ") {
			continue
		}
		asked++
		out, _, err := cp.Kubectl(t.Context(), "", strings.Fields(question)[1:]...)
		if failed := (*controlplane.KubectlError)(nil); err != nil {
			require.ErrorAs(t, err, &failed)
		}
		assert.Equal(t, answer, strings.TrimSpace(out), question)
	}
	assert.GreaterOrEqual(t, asked, 8)
}

func TestUndeployKeepsWhatIsOthers(t *testing.T) {
	dir, _, _ := overlay(t, "embedded")
	apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: overprovisioning}\n")
	deploy(t, dir)
	apply(t, `
apiVersion: v1
kind: ConfigMap
metadata: {name: others, namespace: warmpool-system}
---
apiVersion: v1
kind: Secret
metadata: {name: warmpool-ca, namespace: warmpool-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: others, namespace: default}
spec:
  replicas: 0
  selector: {matchLabels: {app: others}}
  template:
    metadata: {labels: {app: others, workspace.jupyter.org/workspace-name: no-placeholder}}
    spec:
      priorityClassName: overprovisioning-placeholder
      containers: [{name: pause, image: registry.example/pause:1}]
`)
	out := undeploy(t, dir)
	assert.Contains(t, out, "Namespace overprovisioning stays: it was here before warmpool")
	assert.Contains(t, out, "Namespace warmpool-system stays: it has ConfigMap/others")
	assert.Contains(t, out, "PriorityClass overprovisioning-placeholder stays: these Deployments use it: default/others")
	assert.Equal(t, "configmap/others\n", cluster(t, "get", "-n", install.Namespace, "configmaps,secrets,leases", "-o", "name", "--field-selector=metadata.name!=kube-root-ca.crt"))
	assert.Empty(t, cluster(t, "get", "-n", "overprovisioning", "deployments,pods", "-o", "name"))

	cluster(t, "delete", "deployment", "-n", "default", "others")
	cluster(t, "delete", "configmap", "-n", install.Namespace, "others")
	undeploy(t, dir)
	assert.Empty(t, cluster(t, "get", "namespace,priorityclass", "-l", "app.kubernetes.io/part-of=warmpool", "-o", "name"))
	cluster(t, "get", "namespace", "overprovisioning") // fails if it is gone
	cluster(t, "delete", "namespace", "overprovisioning")
}

// A cluster in which nothing answers behind the webhooks is got going again as the documentation says.
func TestEmergency(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(root, "docs", "runbook.md"))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(doc), "## Emergency")
	require.True(t, found)
	_, rest, _ = strings.Cut(rest, "```sh\nkubectl ")
	command, _, found := strings.Cut(rest, "\n```")
	require.True(t, found)
	require.NotContains(t, command, "\n", "one command")

	dir, _, _ := overlay(t, "embedded")
	deploy(t, dir)
	const namespaced = "apiVersion: v1\nkind: Namespace\nmetadata: {name: stuck}\n"
	apply(t, namespaced)
	broken := filepath.Join(root, "manifests", "try", "placeholder-broken.yaml")
	change := []string{"create", "--dry-run=server", "-f", broken}
	_, _, err = cp.Kubectl(t.Context(), "", change...)
	require.ErrorContains(t, err, "failed calling webhook")
	apply(t, strings.ReplaceAll(workspace, "team", "stuck")) // never kept out
	cluster(t, "scale", "deployment", "-n", "overprovisioning", "spaces-placeholder-cpu", "--replicas=0")

	cluster(t, strings.Fields(command)...)
	require.Eventually(t, func() bool { // the API server forgets a webhook a moment later
		_, _, err := cp.Kubectl(t.Context(), "", "create", "--dry-run=server", "-n", "overprovisioning", "-f", broken)
		return err == nil || strings.Contains(err.Error(), "AlreadyExists")
	}, limit, step)
	undeploy(t, dir)
	cluster(t, "delete", "namespace", "stuck")
}
