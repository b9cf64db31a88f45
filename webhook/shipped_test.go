package webhook_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	psaapi "k8s.io/pod-security-admission/api"
	psapolicy "k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"warmpool.sh/webhook"
	"warmpool.sh/webhook/cluster/manifest"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/policy"
)

const (
	exampleCluster = "../manifests/examples/fine"
	exampleConfig  = exampleCluster + "/warmpool.yaml"
)

// The shipped placeholders are complete: applied through the webhook they come out as they went in, so that what is in
// Git is what is in the cluster, and no rule has anything to say about them.
func TestShippedPlaceholdersAreComplete(t *testing.T) {
	shipped := render(t, "../manifests/overlays/embedded")
	configMap := find[corev1.ConfigMap](t, shipped, "ConfigMap", "warmpool-config")
	example, err := os.ReadFile(exampleConfig)
	require.NoError(t, err)
	for name, configuration := range map[string]string{
		"shipped configuration": configMap.Data["warmpool.yaml"],
		"example configuration": string(example),
	} {
		e := exampleEvaluator(t, configuration)
		for _, pool := range []string{"cpu", "gpu"} {
			t.Run(name+"/"+pool, func(t *testing.T) {
				d := find[appsv1.Deployment](t, shipped, "Deployment", "spaces-placeholder-"+pool)
				require.True(t, e.IsPlaceholder(d))
				v := webhook.JudgePlaceholder(e, d, nil, d.Namespace)
				assert.Equal(t, pool, v.Pool)
				assert.Empty(t, v.Patch)
				assert.Empty(t, outcomes(v.Findings))
			})
		}
	}
}

// The files hold the values of values.yaml, so that whoever reads or applies one alone is not misled.
func TestShippedFilesAreWhatIsRendered(t *testing.T) {
	shipped := render(t, "../manifests/base")
	files, err := manifest.Objects([]string{
		"../manifests/base/placeholders", "../manifests/base/cpa", "../manifests/base/warmpool/deployment.yaml",
	}, nil)
	require.NoError(t, err)
	for _, file := range files {
		rendered := named(t, shipped, file.GetKind(), file.GetName())
		assert.Equal(t, file.Object["spec"], rendered.Object["spec"], file.String())
		assert.Equal(t, file.Object["data"], rendered.Object["data"], file.String())
	}
}

// All pods of the shipped manifests satisfy the strictest Pod Security level, wherever it is enforced.
func TestShippedPodsSatisfyRestricted(t *testing.T) {
	restricted, err := psapolicy.NewEvaluator(psapolicy.DefaultChecks(), nil)
	require.NoError(t, err)
	level := psaapi.LevelVersion{Level: psaapi.LevelRestricted, Version: psaapi.LatestVersion()}
	judged := 0
	for _, o := range render(t, "../manifests/overlays/embedded") {
		if o.GetKind() != "Deployment" {
			continue
		}
		judged++
		d, err := manifest.Typed[appsv1.Deployment](o)
		require.NoError(t, err)
		template := d.Spec.Template
		result := psapolicy.AggregateCheckResults(restricted.EvaluatePod(level, &template.ObjectMeta, &template.Spec))
		assert.True(t, result.Allowed, "%s: %s", d.Name, result.ForbiddenDetail())
	}
	assert.Equal(t, 5, judged)
}

// The API server sends each kind of object to the path that is served for it, never from our own namespace or
// kube-system, and no one but the process itself writes caBundle.
func TestShippedWebhookConfigurations(t *testing.T) {
	shipped := render(t, "../manifests/overlays/embedded")
	mutating := find[admissionregistrationv1.MutatingWebhookConfiguration](t, shipped, "MutatingWebhookConfiguration", "warmpool").Webhooks
	validating := find[admissionregistrationv1.ValidatingWebhookConfiguration](t, shipped, "ValidatingWebhookConfiguration", "warmpool").Webhooks
	pods := find[admissionregistrationv1.MutatingWebhookConfiguration](t, shipped, "MutatingWebhookConfiguration", "warmpool-pods").Webhooks
	require.Len(t, mutating, 1)
	require.Len(t, validating, 1)
	require.Len(t, pods, 1)

	assert.Equal(t, webhook.PodsPath, *pods[0].ClientConfig.Service.Path)
	assert.Equal(t, webhook.MutatePlaceholdersPath, *mutating[0].ClientConfig.Service.Path)
	assert.Equal(t, webhook.ValidatePlaceholdersPath, *validating[0].ClientConfig.Service.Path)
	assert.Equal(t, admissionregistrationv1.Ignore, *pods[0].FailurePolicy, "a pod is never kept out")
	assert.Equal(t, pods[0].NamespaceSelector, mutating[0].NamespaceSelector)
	assert.Equal(t, mutating[0].NamespaceSelector, validating[0].NamespaceSelector)
	assert.Equal(t, []string{"kube-system", "warmpool-system"}, mutating[0].NamespaceSelector.MatchExpressions[0].Values)
	assert.Equal(t, mutating[0].MatchConditions, validating[0].MatchConditions)
	assert.Equal(t, mutating[0].Rules, validating[0].Rules)
	assert.NotContains(t, yamlOf(t, "../manifests/overlays/embedded"), "caBundle:")
}

// A placeholder as the public guide leaves it is admitted; what it lacks is filled, and the rest is said.
func TestGuidePlaceholderIsAdmittedAndFilled(t *testing.T) {
	configuration, err := os.ReadFile(exampleConfig)
	require.NoError(t, err)
	e := exampleEvaluator(t, string(configuration))
	objects, err := manifest.Objects([]string{"testdata/guide.yaml"}, nil)
	require.NoError(t, err)
	d := find[appsv1.Deployment](t, objects, "Deployment", "spaces-placeholder-cpu")

	v := webhook.JudgePlaceholder(e, d, nil, d.Namespace)
	assert.Equal(t, "cpu", v.Pool)
	assert.False(t, v.Denied())
	assert.ElementsMatch(t, []map[string]any{
		{
			"op":   "add",
			"path": "/spec/template/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions/-",
			"value": map[string]any{
				"key": "karpenter.sh/nodepool", "operator": "In", "values": []any{"spaces-cpu"},
			},
		},
		{
			"op":   "add",
			"path": "/spec/strategy",
			"value": map[string]any{
				"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": 0., "maxUnavailable": 1.},
			},
		},
		{
			"op":    "add",
			"path":  "/spec/template/spec/initContainers/0/image",
			"value": "public.ecr.aws/sagemaker/sagemaker-distribution:3.2.0-cpu",
		},
	}, operations(t, v.Patch))
	assert.Equal(t, []string{"Warn placeholder-image"}, outcomes(v.Findings), "the image that it named is replaced")
}

// The objects to try give what their comments promise.
func TestPlaceholdersToTry(t *testing.T) {
	configuration, err := os.ReadFile(exampleConfig)
	require.NoError(t, err)
	e := exampleEvaluator(t, string(configuration))
	for name, want := range map[string]struct{ filled, outcomes []string }{
		"broken": {
			filled: []string{
				"/spec/template/spec/affinity/nodeAffinity", "/spec/template/spec/tolerations",
				"/spec/template/spec/terminationGracePeriodSeconds", "/spec/template/spec/initContainers/0/image",
			},
			outcomes: []string{
				"Warn placeholder-image", "Deny placeholder-anti-affinity", "Deny placeholder-do-not-disrupt", "Deny placeholder-accelerator",
				"Deny placeholder-pull-command", "Warn placeholder-rollout", "Warn placeholder-qos",
				"Warn placeholder-pull-policy", "Warn placeholder-sizing-mode",
			},
		},
		"fixed": {},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := manifest.Objects([]string{"../manifests/try/placeholder-" + name + ".yaml"}, nil)
			require.NoError(t, err)
			d := find[appsv1.Deployment](t, objects, "Deployment", "spaces-placeholder-gpu")
			v := webhook.JudgePlaceholder(e, d, nil, d.Namespace)
			var filled []string
			for _, operation := range v.Patch {
				filled = append(filled, operation.Path)
			}
			assert.ElementsMatch(t, want.filled, filled)
			assert.ElementsMatch(t, want.outcomes, outcomes(v.Findings))
		})
	}
}

// The Workspace pods to try reach their pools.
func TestWorkspacesToTry(t *testing.T) {
	configuration, err := os.ReadFile(exampleConfig)
	require.NoError(t, err)
	e := exampleEvaluator(t, string(configuration))
	for pool, name := range map[string]string{"cpu": "workspace-survey-5c9f7d6b4-9jw7t", "gpu": "workspace-llama-7f6b9d5c8-x2kqp"} {
		t.Run(pool, func(t *testing.T) {
			objects, err := manifest.Objects([]string{"../manifests/try/workspace-" + pool + ".yaml"}, nil)
			require.NoError(t, err)
			pod := find[corev1.Pod](t, objects, "Pod", name)
			require.True(t, e.IsWorkspace(pod.Labels))
			v := webhook.JudgePod(e, pod, pod.Namespace)
			assert.Equal(t, pool, v.Pool)
			assert.NotEmpty(t, v.Patch)
			assert.Empty(t, outcomes(v.Findings))
		})
	}
}

func exampleEvaluator(t testing.TB, configuration string) *policy.Evaluator {
	t.Helper()
	cfg, err := config.Load([]byte(configuration), policy.IDs())
	require.NoError(t, err)
	facts, _, err := manifest.Read([]string{exampleCluster}, nil)
	require.NoError(t, err)
	e, err := policy.New(cfg, facts, time.Now())
	require.NoError(t, err)
	return e
}

func yamlOf(t *testing.T, kustomization string) string {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), kustomization)
	require.NoError(t, err)
	text, err := built.AsYaml()
	require.NoError(t, err)
	return string(text)
}

// render is what `kubectl kustomize` prints, as objects.
func render(t *testing.T, kustomization string) []manifest.Object {
	t.Helper()
	objects, err := manifest.Objects([]string{"-"}, bytes.NewBufferString(yamlOf(t, kustomization)))
	require.NoError(t, err)
	return objects
}

// find returns the only object of the kind with the name, in its Go type.
func find[T any](t *testing.T, objects []manifest.Object, kind, name string) *T {
	t.Helper()
	typed, err := manifest.Typed[T](named(t, objects, kind, name))
	require.NoError(t, err)
	return typed
}

func named(t *testing.T, objects []manifest.Object, kind, name string) manifest.Object {
	t.Helper()
	i := slices.IndexFunc(objects, func(o manifest.Object) bool { return o.GetKind() == kind && o.GetName() == name })
	require.GreaterOrEqual(t, i, 0, "no %s %s", kind, name)
	return objects[i]
}

// outcomes are the findings' actions and rules.
func outcomes(findings []policy.Finding) []string {
	var lines []string
	for i := range findings {
		lines = append(lines, string(findings[i].Action)+" "+findings[i].Rule.ID)
	}
	return lines
}

// operations is the patch as the API server reads it.
func operations(t *testing.T, patch placement.Patch) []map[string]any {
	t.Helper()
	body, err := json.Marshal(patch)
	require.NoError(t, err)
	var read []map[string]any
	require.NoError(t, json.Unmarshal(body, &read))
	return read
}
