package apiserver_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// injector is another project's webhook, whose name sorts after warmpool's: it changes pods after warmpool did, so that
// warmpool is asked again.
func injector(t *testing.T, u *user, namespace string, inject func(*corev1.Pod)) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review, err := injected(r, inject)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review) // the API server tells of what it does not get
	}))
	t.Cleanup(server.Close)
	url, ifNeeded, none, fail := server.URL, admissionregistrationv1.IfNeededReinvocationPolicy, admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Fail
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "zz-injector"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "injector.example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
			NamespaceSelector:  &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			ReinvocationPolicy: &ifNeeded, SideEffects: &none, FailurePolicy: &fail, AdmissionReviewVersions: []string{"v1"},
		}},
	}
	require.NoError(t, admin.Create(t.Context(), configuration))
	injects := func() bool {
		probe := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"}, Spec: workspacePod("").Spec}
		got, err := u.CoreV1().Pods(namespace).Create(cleanup, probe, dryRun)
		return err == nil && len(got.Spec.Containers)+len(got.Spec.Tolerations) > 3 // one of its own, and two from the API server
	}
	t.Cleanup(func() {
		assert.NoError(t, admin.Delete(cleanup, configuration))
		eventually(t, "the injector is gone", func() bool { return !injects() })
	})
	eventually(t, "the injector is in force", injects)
}

func injected(r *http.Request, inject func(*corev1.Pod)) (*admissionv1.AdmissionReview, error) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		return nil, err
	}
	var pod corev1.Pod
	if err := json.Unmarshal(review.Request.Object.Raw, &pod); err != nil {
		return nil, err
	}
	inject(&pod)
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/spec/containers", "value": pod.Spec.Containers},
		{"op": "add", "path": "/spec/tolerations", "value": pod.Spec.Tolerations},
	})
	if err != nil {
		return nil, err
	}
	patchType := admissionv1.PatchTypeJSONPatch
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true, Patch: patch, PatchType: &patchType}
	review.Request = nil
	return &review, nil
}

// withContainer adds a container once.
func withContainer(devices ...corev1.ResourceName) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		if !slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == "injected" }) {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "injected", Image: "example.com/sidecar:1",
				ImagePullPolicy: corev1.PullIfNotPresent, TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
				Resources: corev1.ResourceRequirements{Limits: list(devices...), Requests: list(devices...)}})
		}
	}
}

func withToleration(toleration corev1.Toleration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		if !slices.Contains(pod.Spec.Tolerations, toleration) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, toleration)
		}
	}
}

// Asked again, warmpool adds what has become necessary, once, and nothing else.
func TestReinvocation(t *testing.T) {
	cases := []struct {
		name            string
		pod             *corev1.Pod
		pinned          string // by the user to this NodePool
		inject          func(*corev1.Pod)
		affinity, added string
		warnings        []string
	}{
		{name: "a container", pod: workspacePod("gpu-a", gpu), inject: withContainer(),
			affinity: gpuA, added: gpuExists + `, {key: dedicated, operator: Equal, value: notebooks, effect: NoSchedule}`},
		{name: "a container with a GPU beside one with a GPU", pod: workspacePod("gpu-a", gpu), inject: withContainer(gpu),
			affinity: gpuA, added: gpuExists + `, {key: dedicated, operator: Equal, value: notebooks, effect: NoSchedule}`},
		{name: "the first container with a GPU", pod: workspacePod(""), pinned: "spaces-gpu", inject: withContainer(gpu),
			added: gpuExists, warnings: []string{"workspace-pool-conflict: …excludes pool cpu"}},
		{name: "a toleration of the pool's", pod: workspacePod("gpu-a", gpu),
			inject:   withToleration(corev1.Toleration{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}),
			affinity: gpuA, added: gpuExists + `, {key: dedicated, operator: Equal, value: notebooks, effect: NoSchedule}, {key: nvidia.com/gpu, operator: Exists}`},
		{name: "a toleration of others", pod: workspacePod("teams"),
			inject:   withToleration(corev1.Toleration{Key: "example.com/other", Operator: corev1.TolerationOpExists}),
			affinity: `{key: karpenter.sh/nodepool, operator: In, values: [teams]}`, added: teamExists + `, {key: example.com/other, operator: Exists}`},
		// By now the pod is a CPU one that somebody, warmpool, has pinned: what is pinned is not moved. The user is told.
		{name: "a GPU into a CPU pod", pod: workspacePod("cpu-a"), inject: withContainer(gpu),
			affinity: `{key: karpenter.sh/nodepool, operator: In, values: [cpu-a]}`,
			warnings: []string{"workspace-pool-conflict: …cpu-a", "workspace-pool-conflict: …excludes pool gpu"}},
	}
	u := newUser(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			namespace := u.namespace(t)
			injector(t, u, namespace, c.inject)
			if c.pinned != "" {
				c.pod.Spec.NodeSelector = map[string]string{"karpenter.sh/nodepool": c.pinned}
			}
			before := metric(t, "warmpool_admissions_total", `webhook="pods"`)
			o := u.create(t, namespace, c.pod)
			assert.Equal(t, before+2, metric(t, "warmpool_admissions_total", `webhook="pods"`), "warmpool was not asked again")
			want, ok := o.want.(*corev1.Pod)
			require.True(t, ok)
			if c.affinity != "" {
				want.Spec.Affinity = &corev1.Affinity{NodeAffinity: fromYAML[*corev1.NodeAffinity](t, requiredTerm(c.affinity))}
			}
			c.inject(want)
			want.Spec.Tolerations = append(want.Spec.Tolerations[:2], tolerations(t, c.added)...)
			o.same(t)
			warned(t, o.warnings, c.warnings...)
		})
	}
}

// A webhook that asks warmpool twice about the same pod gets nothing the second time: the object decides, not a mark.
func TestPlacedPodThroughReinvocation(t *testing.T) {
	u := newUser(t)
	namespace := u.namespace(t)
	placed := u.create(t, namespace, workspacePod("gpu-a", gpu))
	require.NoError(t, placed.err)
	again, ok := placed.got.DeepCopyObject().(*corev1.Pod)
	require.True(t, ok)
	again.ObjectMeta = workspacePod("gpu-a", gpu).ObjectMeta
	before := metric(t, "warmpool_admissions_total", `webhook="pods"`, `verdict="allowed"`)
	sameObject(t, placed.got, u.create(t, namespace, again).got)
	assert.Equal(t, before+1, metric(t, "warmpool_admissions_total", `webhook="pods"`, `verdict="allowed"`), "the patch is not empty")
}
