// Package manifests_test judges what each overlay, variant and component renders to: alone, and on a real API server.
package manifests_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	psaapi "k8s.io/pod-security-admission/api"
	psapolicy "k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/install"
)

// monitoringGroup is that of the Prometheus Operator, whose types test/harness/monitoring decodes strictly.
const monitoringGroup = "monitoring.coreos.com"

// kustomizations are the folders to render, by what they are: overlays, variants, and the embedded overlay with each of
// the components and with all of them. They are of a copy of manifests, beside which there is nothing else.
func kustomizations(t *testing.T) map[string]string {
	t.Helper()
	root := copied(t)
	found := map[string]string{}
	for _, kind := range []string{"overlays", "variants"} {
		for _, name := range folders(t, filepath.Join(root, "manifests", kind)) {
			found[kind+"/"+name] = filepath.Join(root, "manifests", kind, name)
		}
	}
	components := folders(t, filepath.Join(root, "manifests", "components"))
	for _, name := range components {
		found["components/"+name] = withComponents(t, root, name)
	}
	// Placeholders have a fixed number or are sized by demand.
	found["components"] = withComponents(t, root, slices.DeleteFunc(components, func(name string) bool { return name == "without-cpa" })...)
	for _, overlay := range folders(t, filepath.Join(root, "manifests", "overlays")) {
		found["variants/namespaces of "+overlay] = inOtherNamespaces(t, root, overlay)
	}
	require.GreaterOrEqual(t, len(found), 3)
	return found
}

// copied is a folder that holds a copy of manifests alone.
func copied(t *testing.T) string {
	t.Helper()
	root, err := install.Root()
	require.NoError(t, err)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.CopyFS(filepath.Join(dir, "manifests"), os.DirFS(filepath.Join(root, "manifests"))))
	return dir
}

// inOtherNamespaces is the variant of that name on another overlay and with the components that name namespaces.
func inOtherNamespaces(t *testing.T, root, overlay string) string {
	t.Helper()
	variants := filepath.Join(root, "manifests", "variants")
	dir := filepath.Join(variants, "namespaces-of-"+overlay)
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(variants, "namespaces"))))
	file := filepath.Join(dir, "kustomization.yaml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	changed := strings.ReplaceAll(string(text), "overlays/embedded", "overlays/"+overlay) +
		"components: [../../components/monitoring, ../../components/networkpolicy, ../../components/demand]\n"
	require.NoError(t, os.WriteFile(file, []byte(changed), 0o600))
	return dir
}

func folders(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	require.NotEmpty(t, names, dir)
	return names
}

// withComponents writes an overlay as a user would.
func withComponents(t *testing.T, root string, components ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	manifests, err := filepath.Rel(dir, filepath.Join(root, "manifests"))
	require.NoError(t, err)
	text := fmt.Sprintf("resources: [%s/overlays/embedded]\ncomponents:\n", manifests)
	for _, component := range components {
		text += fmt.Sprintf("- %s/components/%s\n", manifests, component)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600))
	return dir
}

// render builds a kustomization and decodes each object strictly into its type.
func render(t *testing.T, dir string) (objects, []*unstructured.Unstructured) {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, certmanagerv1.AddToScheme(scheme))
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	rendered, err := install.Render(dir)
	require.NoError(t, err)
	var typed objects
	seen := map[string]bool{}
	for _, object := range rendered {
		name := object.GetKind() + " " + client.ObjectKeyFromObject(object).String()
		assert.False(t, seen[name], "%s is there twice", name)
		seen[name] = true
		assert.Equal(t, "warmpool", object.GetLabels()["app.kubernetes.io/part-of"], name)
		if object.GroupVersionKind().Group == monitoringGroup {
			typed = append(typed, object)
			continue
		}
		content, err := object.MarshalJSON()
		require.NoError(t, err)
		decoded, _, err := decoder.Decode(content, nil, nil)
		require.NoError(t, err, name)
		one, ok := decoded.(client.Object)
		require.True(t, ok, name)
		typed = append(typed, one)
	}
	return typed, rendered
}

func TestRendered(t *testing.T) {
	restricted, err := psapolicy.NewEvaluator(psapolicy.DefaultChecks(), nil)
	require.NoError(t, err)
	for name, dir := range kustomizations(t) {
		t.Run(name, func(t *testing.T) {
			all, _ := render(t, dir)
			all.namespaces(t)
			all.rights(t)
			all.pods(t)
			all.services(t)
			all.webhooks(t)
			all.selectors(t)
			all.fences(t)
			all.autoscalers(t)
			for _, namespace := range of[*corev1.Namespace](all) {
				assert.Equal(t, "restricted", namespace.Labels[psaapi.EnforceLevelLabel], namespace.Name)
			}
			for _, d := range of[*appsv1.Deployment](all) {
				level := psaapi.LevelVersion{Level: psaapi.LevelRestricted, Version: psaapi.LatestVersion()}
				for _, result := range restricted.EvaluatePod(level, &d.Spec.Template.ObjectMeta, &d.Spec.Template.Spec) {
					assert.True(t, result.Allowed, "%s: %s %s", d.Name, result.ForbiddenReason, result.ForbiddenDetail)
				}
			}
		})
	}
}

// What each variant is for is in it, and what it takes the place of is not.
func TestVariants(t *testing.T) {
	all := kustomizations(t)
	for name, words := range map[string]struct{ has, lacks []string }{
		"variants/node-label": {[]string{"example.com/pool"}, []string{"karpenter.sh/nodepool", "do-not-disrupt"}},
		"variants/namespaces": {[]string{"platform-warmpool", "platform-placeholders"}, []string{"warmpool-system", "namespace: overprovisioning", "=overprovisioning"}},
		"variants/namespaces of cert-manager": {
			[]string{"warmpool-webhook.platform-warmpool.svc.cluster.local", "inject-ca-from: platform-warmpool/warmpool-webhook"},
			[]string{"warmpool-system", "namespace: overprovisioning"},
		},
		"variants/namespaces of cel": {[]string{"MutatingAdmissionPolicy"}, []string{"warmpool-system", "namespace: overprovisioning"}},
		"overlays/cel":               {[]string{"MutatingAdmissionPolicy", "--placement=cel"}, []string{"warmpool-pods,", "mutate-pods"}},
		"variants/static-policy":     {[]string{"MutatingAdmissionPolicyBinding", "--placement=none"}, []string{"mutate-pods", "--placement=cel"}},
		"variants/without-cpa":       {[]string{"replicas: 2"}, []string{"cpa-config", "overprovisioning-cpa", "proportional"}},
		"variants/demand":            {[]string{"deployments/scale", "# by demand"}, []string{"cpa-config", "overprovisioning-cpa", "proportional"}},
		"components/demand":          {[]string{"deployments/scale"}, []string{"cpa-config", "overprovisioning-cpa", "proportional"}},
		"overlays/embedded":          {[]string{"warmpool-demand"}, []string{"deployments/scale,"}},
		"components/without-cpa":     {[]string{"replicas: 2"}, []string{"cpa-config", "overprovisioning-cpa", "proportional"}},
	} {
		_, rendered := render(t, all[name])
		var text bytes.Buffer
		for _, object := range rendered {
			content, err := object.MarshalJSON()
			require.NoError(t, err)
			text.Write(content)
		}
		flat := strings.ReplaceAll(text.String(), `"`, "")
		for _, word := range words.has {
			assert.Contains(t, flat, strings.ReplaceAll(word, ": ", ":"), name)
		}
		for _, word := range words.lacks {
			assert.NotContains(t, flat, strings.ReplaceAll(word, ": ", ":"), name)
		}
	}
}

// Who gets an alert finds out what to do about it: its runbook_url leads to a section of its own.
func TestAlertsAreDocumented(t *testing.T) {
	root, err := install.Root()
	require.NoError(t, err)
	rules, err := os.ReadFile(filepath.Join(root, "manifests", "components", "monitoring", "rules.yaml"))
	require.NoError(t, err)
	alerts := regexp.MustCompile(`- alert: (\w+)`).FindAllSubmatch(rules, -1)
	urls := regexp.MustCompile(`runbook_url: (\S+)#(\S+)`).FindAllSubmatch(rules, -1)
	require.NotEmpty(t, alerts)
	require.Len(t, urls, len(alerts), "each alert has a runbook_url")
	for i, alert := range alerts {
		name := string(alert[1])
		doc, err := os.ReadFile(filepath.Join(root, string(urls[i][1])))
		require.NoError(t, err)
		assert.Contains(t, string(doc), "\n### "+name+"\n")
		assert.Equal(t, strings.ToLower(name), string(urls[i][2]), "the anchor of its heading")
	}
}
