package deploy_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
)

// commands are the code blocks of a section of a page of the documentation, without the indentation of the list that they are in.
func commands(t *testing.T, page, section string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", page))
	require.NoError(t, err)
	_, content, found := strings.Cut(string(text), "\n## "+section+"\n")
	require.True(t, found, "%s has no section %q", page, section)
	content, _, _ = strings.Cut(content, "\n## ")
	var blocks []string
	for _, match := range regexp.MustCompile("(?ms)^( *)```sh\n(.*?)^ *```$").FindAllStringSubmatch(content, -1) {
		blocks = append(blocks, strings.TrimPrefix(strings.ReplaceAll("\n"+match[2], "\n"+match[1], "\n"), "\n"))
	}
	return blocks
}

// clone has of a clone what the commands of an administrator need; they write into it.
func clone(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "manifests"), os.DirFS(filepath.Join(root, "manifests"))))
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Makefile"), makefile, 0o600))
	return dir
}

// literally runs commands in a shell that finds kubectl, warmpool and the cluster as that of an administrator would, and stops
// at the first that fails. It gives what they printed.
func literally(t *testing.T, dir, commands string) string {
	t.Helper()
	programs := t.TempDir()
	require.NoError(t, os.Symlink(kubectl, filepath.Join(programs, "kubectl")))
	require.NoError(t, os.Symlink(binary, filepath.Join(programs, "warmpool")))
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "KUBECONFIG="+cp.Kubeconfig, "KUBECACHEDIR="+filepath.Join(cp.Dir, "kubectl"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Run(), "%s\n%s", commands, &out)
	return out.String()
}

// The pages about installing and uninstalling are followed, block by block and word by word. Only the image is not built here.
func TestPagesInstall(t *testing.T) {
	helm, kustomize, uninstall := commands(t, "install.md", "By Helm"), commands(t, "install.md", "By kustomize"), commands(t, "upgrade.md", "Uninstall")
	require.Len(t, helm, 3)
	require.Len(t, kustomize, 2)
	require.Len(t, uninstall, 1)
	push, chart, check, deploy, undeploy := helm[0], helm[1], kustomize[0], kustomize[1], uninstall[0]
	dir := clone(t)
	pools(t)
	before := inventory(t)

	out := literally(t, dir, strings.Replace(push, "make ", "make --dry-run ", 1))
	assert.Contains(t, out, "docker buildx build --platform linux/amd64,linux/arm64")
	assert.Contains(t, out, "-t registry.example/warmpool:v0.1.0 --push .")

	r := newRelease(t, "v4")
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "manifests", "chart")))
	require.NoError(t, os.CopyFS(filepath.Join(dir, "manifests", "chart"), os.DirFS(r.dir)))
	out = literally(t, dir, "PATH="+filepath.Dir(r.helm)+":$PATH\n"+chart)
	assert.Contains(t, out, "warmpool registry.example/warmpool:v0.1.0 places Workspaces in 3 warm pools")
	r.must(t, "uninstall", "warmpool", "--wait")
	waitGone(t)

	out = literally(t, dir, check)
	assert.NotRegexp(t, `Warning: |Denied: |not verified`, out)
	assert.GreaterOrEqual(t, strings.Count(out, "[]\n"), 2, "no placeholder is changed:\n%s", out)

	overlay, shipped, port := overlay(t, "embedded") // for the process that stands for the pods
	embedded := filepath.Join(dir, "manifests", "overlays", "embedded")
	require.NoError(t, os.RemoveAll(embedded))
	require.NoError(t, os.CopyFS(embedded, os.DirFS(overlay)))
	out = literally(t, dir, deploy)
	assert.Contains(t, out, `deployment "warmpool" successfully rolled out`)
	assert.Equal(t, "registry.example/warmpool:v0.1.0", cluster(t, "get", "deployment", "-n", install.Namespace, install.Deployment, "-o", "jsonpath={.spec.template.spec.containers[0].image}"))
	process, err := install.Start(t.Context(), cp, binary, shipped, port)
	require.NoError(t, err)
	_, _, err = cp.Kubectl(t.Context(), "", "create", "--dry-run=server", "-f", filepath.Join(root, "manifests", "try", "placeholder-broken.yaml"))
	require.ErrorContains(t, err, "do-not-disrupt", "warmpool answers")

	literally(t, dir, undeploy)
	if err := process.Kill(); err != nil { // without its Lease it may have ended by itself
		require.ErrorIs(t, err, os.ErrProcessDone)
	}
	assert.Equal(t, before, inventory(t))
}

// pools are those of the example cluster, which stand for the administrator's own.
func pools(t *testing.T) {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, name := range []string{"nodepools.yaml", "templates.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, "manifests", "examples", "fine", name))
		require.NoError(t, err)
		objects, err := controlplane.Decode(bytes.NewReader(text))
		require.NoError(t, err)
		for _, object := range objects {
			if object.GetKind() == "NodePool" || object.GetKind() == "WorkspaceTemplate" {
				all = append(all, object)
			}
		}
	}
	offer := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("128Gi"), corev1.ResourcePods: resource.MustParse("200"),
		"nvidia.com/gpu": resource.MustParse("1"),
	}
	require.NoError(t, cp.CreateNode(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "warm-gpu", Labels: map[string]string{"karpenter.sh/nodepool": "spaces-gpu"}, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Spec:   corev1.NodeSpec{Taints: []corev1.Taint{{Key: "nvidia.com/gpu", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{Capacity: offer, Allocatable: offer},
	}))
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName("jupyter-k8s-shared")
	require.NoError(t, cp.Apply(t.Context(), append([]*unstructured.Unstructured{namespace}, all...)...))
	require.Eventually(t, func() bool { // the controllers fill new namespaces a moment later
		out, _, err := cp.Kubectl(t.Context(), "", "get", "-n", namespace.GetName(), "configmap/kube-root-ca.crt", "serviceaccount/default")
		return err == nil && out != ""
	}, limit, step)
}
