package manifests_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
)

// olderKubectls names a go.mod file of test/harness/kustomize for each kubectl whose kustomize differs in what manifests use. The
// newest is the one of this module.
var olderKubectls = map[string]string{"1.30": "go.mod", "1.32": "go-kubectl-1.32.mod"}

// What one kubectl renders, all that are supported render too: kustomize leaves out silently what it does not understand.
func TestOlderKubectlsRenderTheSame(t *testing.T) {
	root, err := install.Root()
	require.NoError(t, err)
	all := kustomizations(t)
	for kubectl, modFile := range olderKubectls {
		kustomize := filepath.Join(t.TempDir(), "kustomize")
		build := exec.CommandContext(t.Context(), "go", "-C", filepath.Join(root, "test", "harness", "kustomize"), "build", "-modfile", modFile, "-o", kustomize, ".")
		out, err := build.CombinedOutput()
		require.NoError(t, err, string(out))
		for name, dir := range all {
			t.Run(kubectl+"/"+name, func(t *testing.T) {
				var complaints bytes.Buffer
				cmd := exec.CommandContext(t.Context(), kustomize, dir)
				cmd.Stderr = &complaints
				rendered, err := cmd.Output()
				require.NoError(t, err, complaints.String())
				objects, err := controlplane.Decode(bytes.NewReader(rendered))
				require.NoError(t, err)
				newest, err := install.Render(dir)
				require.NoError(t, err)
				assert.ElementsMatch(t, newest, objects)
			})
		}
	}
}

// The first image of values.yaml is that of the first pre-pull container, and of no other one that a user adds.
func TestSecondImageStays(t *testing.T) {
	root := copied(t)
	file := filepath.Join(root, "manifests", "base", "placeholders", "cpu.yaml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	const containers = "      containers:\n"
	require.Equal(t, 1, strings.Count(string(text), containers))
	changed := strings.Replace(string(text), containers, "      - {name: pull-workspace-image-2, image: registry.example/other:1, command: [\"true\"]}\n"+
		containers+"      - {name: pause-2, image: registry.example/other:2}\n", 1)
	require.NotEqual(t, string(text), changed)
	require.NoError(t, os.WriteFile(file, []byte(changed), 0o600))
	all, _ := render(t, filepath.Join(root, "manifests", "overlays", "embedded"))
	images := map[string]string{}
	for _, d := range of[*appsv1.Deployment](all) {
		if d.Name == "spaces-placeholder-cpu" {
			for _, c := range append(append([]corev1.Container{}, d.Spec.Template.Spec.InitContainers...), d.Spec.Template.Spec.Containers...) {
				images[c.Name] = c.Image
			}
		}
	}
	assert.Equal(t, "registry.example/other:1", images["pull-workspace-image-2"])
	assert.Equal(t, "registry.example/other:2", images["pause-2"])
	assert.NotEqual(t, "registry.example/other:1", images["pull-workspace-image"])
}
