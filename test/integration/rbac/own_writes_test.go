package rbac_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/await"
	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/test/harness/needs"
)

// attempt is a JSON patch that warmpool's ServiceAccount sends.
type attempt struct {
	what, patch string
	passes      bool
}

var (
	ofWebhooks = []attempt{
		{what: "caBundle", patch: `[{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "BUNDLE"}]`, passes: true},
		{what: "url", patch: `[{"op": "remove", "path": "/webhooks/0/clientConfig/service"}, {"op": "add", "path": "/webhooks/0/clientConfig/url", "value": "https://thief.example"}]`},
		{what: "url with caBundle", patch: `[{"op": "replace", "path": "/webhooks/0/clientConfig", "value": {"url": "https://thief.example", "caBundle": "BUNDLE"}}]`},
		{what: "another Service", patch: `[{"op": "replace", "path": "/webhooks/0/clientConfig/service/name", "value": "thief"}]`},
		{what: "another path", patch: `[{"op": "replace", "path": "/webhooks/0/clientConfig/service/path", "value": "/all"}]`},
		{what: "rules", patch: `[{"op": "replace", "path": "/webhooks/0/rules", "value": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["secrets"]}]}]`},
		{what: "one more rule", patch: `[{"op": "add", "path": "/webhooks/0/rules/-", "value": {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]}}]`},
		{what: "namespaceSelector", patch: `[{"op": "replace", "path": "/webhooks/0/namespaceSelector", "value": {}}]`},
		{what: "objectSelector", patch: `[{"op": "replace", "path": "/webhooks/0/objectSelector", "value": {"matchLabels": {"a": "b"}}}]`},
		{what: "failurePolicy", patch: `[{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Fail"}]`},
		{what: "timeoutSeconds", patch: `[{"op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": 30}]`},
		{what: "a match condition", patch: `[{"op": "add", "path": "/webhooks/0/matchConditions", "value": [{"name": "a", "expression": "false"}]}]`},
		{what: "no webhook", patch: `[{"op": "remove", "path": "/webhooks"}]`},
		{what: "a second webhook", patch: `[{"op": "copy", "from": "/webhooks/0", "path": "/webhooks/1"}, {"op": "replace", "path": "/webhooks/1/name", "value": "thief.example.com"}]`},
		{what: "a label", patch: `[{"op": "add", "path": "/metadata/labels/warmpool.sh~1a", "value": "b"}]`},
		{what: "an owner", patch: `[{"op": "add", "path": "/metadata/ownerReferences", "value": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "1"}]}]`},
	}
	ofPlaceholders = []attempt{
		{what: "the image of the pre-pull", patch: `[{"op": "replace", "path": "/spec/template/spec/initContainers/0/image", "value": "registry.example/nb:2"}]`, passes: true},
		{what: "one more image", patch: `[{"op": "copy", "from": "/spec/template/spec/initContainers/0", "path": "/spec/template/spec/initContainers/1"},
			{"op": "replace", "path": "/spec/template/spec/initContainers/1/name", "value": "pull-workspace-image-2"}, {"op": "replace", "path": "/spec/template/spec/initContainers/1/image", "value": "registry.example/nb:2"}]`, passes: true},
		{what: "replicas", patch: `[{"op": "replace", "path": "/spec/replicas", "value": 3}]`, passes: true},
		{what: "annotations", patch: `[{"op": "add", "path": "/metadata/annotations", "value": {"warmpool.sh/synced-image": "a"}}]`, passes: true},
		{what: "annotation of the pods", patch: `[{"op": "add", "path": "/spec/template/metadata/annotations/warmpool.sh~1a", "value": "b"}]`, passes: true},
		{what: "privileged", patch: `[{"op": "add", "path": "/spec/template/spec/initContainers/0/securityContext/privileged", "value": true}, {"op": "replace", "path": "/spec/template/spec/initContainers/0/securityContext/allowPrivilegeEscalation", "value": true}]`},
		{what: "the host's processes", patch: `[{"op": "add", "path": "/spec/template/spec/hostPID", "value": true}]`},
		{what: "the host's files", patch: `[{"op": "add", "path": "/spec/template/spec/volumes", "value": [{"name": "h", "hostPath": {"path": "/"}}]}]`},
		{what: "a Secret", patch: `[{"op": "add", "path": "/spec/template/spec/volumes", "value": [{"name": "s", "secret": {"secretName": "s"}}]}]`},
		{what: "a ServiceAccount", patch: `[{"op": "add", "path": "/spec/template/spec/serviceAccountName", "value": "spaces-cpa"}]`},
		{what: "a token", patch: `[{"op": "replace", "path": "/spec/template/spec/automountServiceAccountToken", "value": true}]`},
		{what: "the command of the pre-pull", patch: `[{"op": "replace", "path": "/spec/template/spec/initContainers/0/command", "value": ["sh", "-c", "steal"]}]`},
		{what: "one more image with a command", patch: `[{"op": "add", "path": "/spec/template/spec/initContainers/-", "value": {"name": "pull-workspace-image-2", "image": "thief.example/a:1", "command": ["steal"]}}]`},
		{what: "another init container", patch: `[{"op": "add", "path": "/spec/template/spec/initContainers/-", "value": {"name": "thief", "image": "thief.example/a:1"}}]`},
		{what: "another container", patch: `[{"op": "add", "path": "/spec/template/spec/containers/-", "value": {"name": "thief", "image": "thief.example/a:1"}}]`},
		{what: "the image of the main container", patch: `[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "thief.example/a:1"}]`},
		{what: "affinity", patch: `[{"op": "remove", "path": "/spec/template/spec/affinity"}]`},
		{what: "tolerations", patch: `[{"op": "add", "path": "/spec/template/spec/tolerations", "value": [{"operator": "Exists"}]}]`},
		{what: "priority", patch: `[{"op": "replace", "path": "/spec/template/spec/priorityClassName", "value": "system-node-critical"}]`},
		{what: "strategy", patch: `[{"op": "replace", "path": "/spec/strategy", "value": {"type": "Recreate"}}]`},
		{what: "another's label", patch: `[{"op": "replace", "path": "/metadata/labels/app", "value": "another"}]`},
		{what: "a label of the pods taken away", patch: `[{"op": "remove", "path": "/spec/template/metadata/annotations/karpenter.sh~1do-not-disrupt"}]`},
		{what: "a finalizer", patch: `[{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/stay"]}]`},
	}
	ofPods = []attempt{
		{what: "labels", patch: `[{"op": "add", "path": "/metadata/labels/warmpool.sh~1warm", "value": "true"}, {"op": "add", "path": "/metadata/labels/image.warmpool.sh~1a", "value": "true"}]`, passes: true},
		{what: "the deletion cost", patch: `[{"op": "add", "path": "/metadata/annotations/controller.kubernetes.io~1pod-deletion-cost", "value": "100"}]`, passes: true},
		{what: "another's label", patch: `[{"op": "replace", "path": "/metadata/labels/app", "value": "another"}]`},
		{what: "another's annotation", patch: `[{"op": "remove", "path": "/metadata/annotations/karpenter.sh~1do-not-disrupt"}]`},
		{what: "the image", patch: `[{"op": "replace", "path": "/spec/containers/0/image", "value": "thief.example/a:1"}]`},
		{what: "a toleration", patch: `[{"op": "add", "path": "/spec/tolerations/-", "value": {"operator": "Exists"}}]`},
		{what: "the deadline", patch: `[{"op": "add", "path": "/spec/activeDeadlineSeconds", "value": 1}]`},
		{what: "no owner", patch: `[{"op": "remove", "path": "/metadata/ownerReferences"}]`},
	}
)

// Who takes over a warmpool pod has its rights, and cannot make more of them: what it does not write itself is refused.
func TestOwnWrites(t *testing.T) {
	c := installed(t)
	as := rest.CopyConfig(c.Config)
	as.Impersonate.UserName = user
	warmpool, err := client.New(as, client.Options{})
	require.NoError(t, err)
	placeholder := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "overprovisioning", Name: "spaces-placeholder-cpu"}}
	require.NoError(t, c.admin.Get(t.Context(), client.ObjectKeyFromObject(placeholder), placeholder))
	pod := podOf(placeholder)
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "a", UID: "1"}}
	require.NoError(t, c.admin.Create(t.Context(), pod))

	certificate, _, err := cert.GenerateSelfSignedCertKey("warmpool.example", nil, nil)
	require.NoError(t, err)

	// The policy counts a second after it was written.
	const refusal = "ValidatingAdmissionPolicy 'warmpool-own-writes' with binding 'warmpool-own-writes' denied request"
	await.NoError(t, limit, "the policy is in force", func() error {
		patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/stay"]}]`))
		if err := warmpool.Patch(t.Context(), placeholder.DeepCopy(), patch, client.DryRunAll); err == nil {
			return assert.AnError
		}
		return nil
	})
	for _, of := range []struct {
		object   client.Object
		attempts []attempt
	}{
		{&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "warmpool-pods"}}, ofWebhooks},
		{&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "warmpool"}}, ofWebhooks[:3]},
		{&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "warmpool"}}, ofWebhooks[:3]},
		{placeholder, ofPlaceholders},
		{pod, ofPods},
	} {
		for _, a := range of.attempts {
			object, ok := of.object.DeepCopyObject().(client.Object)
			require.True(t, ok)
			err := warmpool.Patch(t.Context(), object, withBundle(t, certificate, a.patch), client.DryRunAll)
			if a.passes {
				assert.NoError(t, err, "%T %s: %s", object, object.GetName(), a.what)
			} else {
				assert.ErrorContains(t, err, refusal, "%T %s: %s", object, object.GetName(), a.what)
			}
			// Others may do what they may: the policy is about warmpool alone.
			object, _ = of.object.DeepCopyObject().(client.Object)
			err = c.admin.Patch(t.Context(), object, withBundle(t, certificate, a.patch), client.DryRunAll)
			if err != nil {
				assert.NotContains(t, err.Error(), "ValidatingAdmissionPolicy")
			}
		}
	}
	sample := podOf(placeholder)
	sample.Namespace, sample.Name, sample.Spec.PriorityClassName = install.Namespace, "sample", ""
	assert.NoError(t, warmpool.Create(t.Context(), sample.DeepCopy(), client.DryRunAll), "a sample")
	assert.ErrorContains(t, warmpool.Create(t.Context(), sample), refusal, "a pod that runs")
	refuses(t, warmpool)
	podSecurity(t, c, placeholder)
}

// refuses: the policies inside the API server are not warmpool's to change.
func refuses(t *testing.T, warmpool client.Client) {
	t.Helper()
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": {"a": "b"}}}`))
	for _, object := range []client.Object{
		&admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "warmpool-placement"}},
		&admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "warmpool-placement"}},
		&admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "warmpool-placement-trial"}},
		&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "warmpool-own-writes"}},
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "warmpool-own-writes"}},
	} {
		assert.ErrorContains(t, warmpool.Patch(t.Context(), object, label, client.DryRunAll), "cannot patch resource", "%T", object)
		assert.ErrorContains(t, warmpool.Delete(t.Context(), object, client.DryRunAll), "cannot delete resource", "%T", object)
	}
}

// podSecurity: what ships in the namespace of placeholders may run there, and nothing that has its node.
func podSecurity(t *testing.T, c *cluster, placeholder *appsv1.Deployment) {
	t.Helper()
	deployments := &appsv1.DeploymentList{}
	require.NoError(t, c.admin.List(t.Context(), deployments, client.InNamespace(placeholder.Namespace)))
	assert.Len(t, deployments.Items, 4, "two placeholders and their CPAs")
	for i := range deployments.Items {
		pod := podOf(&deployments.Items[i])
		pod.Name += "-2"
		assert.NoError(t, c.admin.Create(t.Context(), pod, client.DryRunAll), pod.Name)
	}
	pod := podOf(placeholder)
	pod.Name, pod.Spec.HostPID = "privileged", true
	pod.Spec.InitContainers[0].SecurityContext.Privileged = new(true)
	pod.Spec.InitContainers[0].SecurityContext.AllowPrivilegeEscalation = nil
	assert.ErrorContains(t, c.admin.Create(t.Context(), pod, client.DryRunAll), `violates PodSecurity "restricted:latest"`)
}

func podOf(d *appsv1.Deployment) *corev1.Pod {
	template := d.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name = d.Namespace, d.Name+"-1"
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	return pod
}

// installed is an API server with the overlay that gives most rights, and no warmpool: its webhooks let everything through.
func installed(t *testing.T) *cluster {
	t.Helper()
	needs.Check(t, needs.ControlPlane, controlplane.Ready(t.Context(), controlplane.Options{}))
	plane, err := controlplane.Start(t.Context(), controlplane.Options{Log: t.Output()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, plane.Stop()) })
	c := &cluster{ControlPlane: plane}
	c.admin, err = client.New(plane.Config, client.Options{})
	require.NoError(t, err)
	c.root, err = install.Root()
	require.NoError(t, err)
	rendered, err := install.Render(filepath.Join(c.root, "manifests", "overlays", "cel"))
	require.NoError(t, err)
	port, err := controlplane.FreePort()
	require.NoError(t, err)
	local, err := install.Localize(append(rendered, webhookOfPods(t, c.root)...), port)
	require.NoError(t, err)
	for _, object := range local {
		webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
		require.NoError(t, err)
		for _, webhook := range webhooks {
			content, ok := webhook.(map[string]any)
			require.True(t, ok)
			content["failurePolicy"] = "Ignore"
		}
		if len(webhooks) > 0 {
			require.NoError(t, unstructured.SetNestedSlice(object.Object, webhooks, "webhooks"))
		}
	}
	require.NoError(t, plane.Apply(t.Context(), local...))
	return c
}

// withBundle fills in a CA's certificate.
func withBundle(t *testing.T, certificate []byte, patch string) client.Patch {
	t.Helper()
	encoded, err := json.Marshal(certificate)
	require.NoError(t, err)
	return client.RawPatch(types.JSONPatchType, bytes.ReplaceAll([]byte(patch), []byte(`"BUNDLE"`), encoded))
}
