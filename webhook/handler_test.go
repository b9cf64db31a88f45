package webhook_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/yaml"

	"warmpool.sh/webhook"
	"warmpool.sh/webhook/policy"
)

func exampleHandlers(t testing.TB) map[string]http.Handler {
	t.Helper()
	configuration, err := os.ReadFile(exampleConfig)
	require.NoError(t, err)
	e := exampleEvaluator(t, string(configuration))
	return webhook.Handlers(func() *policy.Evaluator { return e }, "", logr.Discard())
}

// review wraps an object, given as YAML, into an AdmissionReview; fields of the request can be overridden.
func review(t testing.TB, object string, override map[string]any) []byte {
	t.Helper()
	var content map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(object), &content))
	kind := map[string]any{"group": "", "version": "v1", "kind": "Pod"}
	if content["kind"] == "Deployment" {
		kind = map[string]any{"group": "apps", "version": "v1", "kind": "Deployment"}
	}
	request := map[string]any{"uid": "u-1", "kind": kind, "namespace": "team-a", "operation": "CREATE", "object": content}
	maps.Copy(request, override)
	body, err := json.Marshal(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
	require.NoError(t, err)
	return body
}

func post(handler http.Handler, contentType string, body []byte) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	request.Header.Set("Content-Type", contentType)
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, request)
	return response
}

func admit(t testing.TB, handler http.Handler, body []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	response := post(handler, "application/json", body)
	require.Equal(t, http.StatusOK, response.Code, response.Body.String())
	var out admissionv1.AdmissionReview
	require.NoError(t, json.Unmarshal(response.Body.Bytes(), &out))
	require.NotNil(t, out.Response)
	assert.Equal(t, "admission.k8s.io/v1", out.APIVersion)
	return out.Response
}

const gpuPod = `
apiVersion: v1
kind: Pod
metadata: {generateName: workspace-w-, labels: {workspace.jupyter.org/workspace-name: w}}
spec: {containers: [{name: workspace, image: i, resources: {limits: {nvidia.com/gpu: "1"}}}]}
`

const brokenPlaceholder = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: ph, labels: {warmpool.sh/pool: cpu}}
spec: {template: {metadata: {labels: {app: ph}}, spec: {containers: [{name: pause, image: pause}]}}}
`

func TestPodIsPlaced(t *testing.T) {
	response := admit(t, exampleHandlers(t)[webhook.PodsPath], review(t, gpuPod, nil))
	assert.True(t, response.Allowed)
	assert.Equal(t, "u-1", string(response.UID))
	assert.JSONEq(t, `[
	  {"op":"add","path":"/spec/affinity","value":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
	    {"matchExpressions":[{"key":"karpenter.sh/nodepool","operator":"In","values":["spaces-gpu"]}]}]}}}},
	  {"op":"add","path":"/spec/tolerations","value":[{"key":"nvidia.com/gpu","operator":"Exists","effect":"NoSchedule"}]}
	]`, string(response.Patch))
	assert.Empty(t, response.Warnings)
}

// A fault of warmpool's own is answered, and the log says nothing of the object that led to it.
func TestPanic(t *testing.T) {
	var log strings.Builder
	logger := funcr.New(func(_, args string) { log.WriteString(args) }, funcr.Options{})
	failing := func(value any) http.Handler {
		return webhook.Handlers(func() *policy.Evaluator { panic(value) }, "", logger)[webhook.PodsPath]
	}
	response := post(failing(errors.New("bad token hunter2")), "application/json", review(t, gpuPod, nil))
	assert.Equal(t, http.StatusInternalServerError, response.Code)
	assert.NotContains(t, response.Body.String()+log.String(), "hunter2")
	assert.Contains(t, log.String(), "*errors.errorString")
	assert.Contains(t, log.String(), "handler_test.go", "the stack")
	assert.PanicsWithValue(t, http.ErrAbortHandler, func() {
		post(failing(http.ErrAbortHandler), "application/json", review(t, gpuPod, nil))
	}, "the server hangs up on it")
}

func TestWhatIsNotOursPasses(t *testing.T) {
	handlers := exampleHandlers(t)
	for name, c := range map[string]struct {
		path   string
		object string
		with   map[string]any
	}{
		"a pod without the Workspace label": {webhook.PodsPath, strings.Replace(gpuPod, "workspace.jupyter.org/workspace-name", "other", 1), nil},
		"an update of a Workspace pod":      {webhook.PodsPath, gpuPod, map[string]any{"operation": "UPDATE"}},
		"a deletion":                        {webhook.ValidatePlaceholdersPath, brokenPlaceholder, map[string]any{"operation": "DELETE", "object": nil}},
		"a Deployment without any mark":     {webhook.ValidatePlaceholdersPath, strings.Replace(brokenPlaceholder, "warmpool.sh/pool", "other", 1), nil},
		"the Deployment of a Workspace": {webhook.MutatePlaceholdersPath,
			strings.Replace(brokenPlaceholder, "{warmpool.sh/pool: cpu}", "{warmpool.sh/pool: cpu, workspace.jupyter.org/workspace-name: w}", 1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			response := admit(t, handlers[c.path], review(t, c.object, c.with))
			assert.True(t, response.Allowed)
			assert.Empty(t, response.Patch)
			assert.Empty(t, response.Warnings)
		})
	}
}

// warmpool's own writes stay what they are: a policy lets it change few fields, and a fill would be one more. Another replica
// may also have heard of a template's change before this one.
func TestOwnWritesAreNotFilled(t *testing.T) {
	const self = "system:serviceaccount:warmpool-system:warmpool"
	configuration, err := os.ReadFile(exampleConfig)
	require.NoError(t, err)
	e := exampleEvaluator(t, string(configuration))
	handler := webhook.Handlers(func() *policy.Evaluator { return e }, self, logr.Discard())[webhook.MutatePlaceholdersPath]
	for user, filled := range map[string]bool{self: false, "somebody": true} {
		response := admit(t, handler, review(t, brokenPlaceholder, map[string]any{"userInfo": map[string]any{"username": user}}))
		assert.True(t, response.Allowed)
		assert.Equal(t, filled, len(response.Patch) > 0, user)
	}
}

func TestDenialIsInvalidWithCauses(t *testing.T) {
	response := admit(t, exampleHandlers(t)[webhook.ValidatePlaceholdersPath], review(t, brokenPlaceholder, map[string]any{"name": "ph"}))
	require.False(t, response.Allowed)
	assert.EqualValues(t, http.StatusUnprocessableEntity, response.Result.Code)
	assert.Equal(t, "Invalid", string(response.Result.Reason))
	require.NotEmpty(t, response.Result.Details.Causes)
	cause := response.Result.Details.Causes[0]
	assert.Equal(t, "spec.template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution", cause.Field)
	assert.Equal(t, "Required value: nothing keeps two placeholders off one node. Add a requiredDuringSchedulingIgnoredDuringExecution podAntiAffinity term with topologyKey kubernetes.io/hostname and a labelSelector that matches the pod template's labels. (rule placeholder-anti-affinity)", cause.Message)
	assert.True(t, strings.HasPrefix(response.Result.Message, `Deployment.apps "ph" is invalid: [spec.template.spec.affinity.podAntiAffinity.`), response.Result.Message)
	for _, warning := range response.Warnings {
		assert.LessOrEqual(t, len([]rune(warning)), 120, warning)
	}
}

// A placeholder of a Helm release whose pool is not configured yet is to be sent again; one by hand is refused for good.
func TestDenialUntilTheConfigurationIsHere(t *testing.T) {
	handler := exampleHandlers(t)[webhook.ValidatePlaceholdersPath]
	for labels, code := range map[string]int32{
		"{warmpool.sh/pool: new, app.kubernetes.io/managed-by: Helm}": http.StatusTooManyRequests,
		"{warmpool.sh/pool: new}":                                     http.StatusUnprocessableEntity,
		"{warmpool.sh/pool: cpu, app.kubernetes.io/managed-by: Helm}": http.StatusUnprocessableEntity,
	} {
		response := admit(t, handler, review(t, strings.Replace(brokenPlaceholder, "{warmpool.sh/pool: cpu}", labels, 1), nil))
		require.False(t, response.Allowed)
		assert.Equal(t, code, response.Result.Code, labels)
		assert.Equal(t, code == http.StatusTooManyRequests, response.Result.Details.RetryAfterSeconds > 0, labels)
		assert.NotEmpty(t, response.Result.Details.Causes)
	}
}

// A client that shows one line must not be flooded.
func TestWarningsAreBounded(t *testing.T) {
	var tolerations []string
	for i := range 50 {
		tolerations = append(tolerations, fmt.Sprintf("{key: foreign-%d, operator: Exists}", i))
	}
	object := strings.Replace(brokenPlaceholder, "containers:", "tolerations: ["+strings.Join(tolerations, ", ")+"], containers:", 1)
	response := admit(t, exampleHandlers(t)[webhook.ValidatePlaceholdersPath], review(t, object, nil))
	require.Len(t, response.Warnings, 10)
	assert.Regexp(t, `^warmpool: 4\d more findings; see warmpool admit -f$`, response.Warnings[9])
}

func TestWhileTheClusterIsNotRead(t *testing.T) {
	handlers := webhook.Handlers(func() *policy.Evaluator { return nil }, "", logr.Discard())
	response := admit(t, handlers[webhook.PodsPath], review(t, gpuPod, nil))
	assert.True(t, response.Allowed)
	assert.Empty(t, response.Patch)
	assert.Equal(t, []string{"warmpool has not read the cluster yet: the pod is not placed and may start on a cold node"}, response.Warnings)

	refused := post(handlers[webhook.ValidatePlaceholdersPath], "application/json", review(t, brokenPlaceholder, nil))
	assert.Equal(t, http.StatusInternalServerError, refused.Code)
	assert.Equal(t, "warmpool has not read the cluster yet; try again in a few seconds\n", refused.Body.String())
}

func TestHostileInput(t *testing.T) {
	handlers := exampleHandlers(t)
	many := strings.Repeat("{key: k, operator: Exists},", 20_000)
	for name, c := range map[string]struct {
		contentType string
		body        string
		code        int
		says        string
	}{
		"no body":              {"application/json", "", 400, "not an AdmissionReview"},
		"broken JSON":          {"application/json", "{", 400, "not an AdmissionReview"},
		"a list":               {"application/json", "[]", 400, "not an AdmissionReview"},
		"another kind":         {"application/json", `{"apiVersion":"v1","kind":"Pod"}`, 400, `must be admission.k8s.io/v1 AdmissionReview, got "v1" "Pod"`},
		"an old version":       {"application/json", `{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"u"}}`, 400, "admission.k8s.io/v1 AdmissionReview"},
		"no request":           {"application/json", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, 400, "has no request"},
		"a null request":       {"application/json", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}`, 400, "has no request"},
		"no uid":               {"application/json", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}}`, 400, "no uid"},
		"no object":            {"application/json", string(review(t, gpuPod, map[string]any{"object": nil})), 400, "has no object"},
		"a subresource":        {"application/json", string(review(t, gpuPod, map[string]any{"subResource": "status"})), 400, "no subresource"},
		"another resource":     {"application/json", string(review(t, brokenPlaceholder, nil)), 400, "this webhook judges /v1, Kind=Pod"},
		"a spec of text":       {"application/json", string(review(t, gpuPod, map[string]any{"object": map[string]any{"spec": "x"}})), 400, "not an AdmissionReview"},
		"a long exponent":      {"application/json", string(review(t, strings.Replace(gpuPod, `"1"`, `"1e-999999999"`, 1), nil)), 400, "exponent must have at most two digits"},
		"wrong content type":   {"text/plain", string(review(t, gpuPod, nil)), 415, "application/json"},
		"no content type":      {"", string(review(t, gpuPod, nil)), 415, "application/json"},
		"eight MiB":            {"application/json", strings.Repeat(" ", 8<<20), 413, "larger than 7340032 bytes"},
		"deep nesting":         {"application/json", strings.Repeat(`{"request":`, 100_000), 400, "not an AdmissionReview"},
		"a null spec":          {"application/json", string(review(t, gpuPod, map[string]any{"object": map[string]any{"spec": nil}})), 200, ""},
		"20,000 tolerations":   {"application/json; charset=utf-8", string(review(t, strings.Replace(gpuPod, "containers:", "tolerations: ["+many+"], containers:", 1), nil)), 200, ""},
		"null where lists are": {"application/json", string(review(t, strings.Replace(gpuPod, "spec: {", "spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: null}}}, tolerations: null, ", 1), nil)), 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			response := post(handlers[webhook.PodsPath], c.contentType, []byte(c.body))
			assert.Equal(t, c.code, response.Code, response.Body.String())
			assert.Contains(t, response.Body.String(), c.says)
			assert.Less(t, response.Body.Len(), 4096)
			next := admit(t, handlers[webhook.PodsPath], review(t, gpuPod, nil))
			assert.NotEmpty(t, next.Patch, "the next request works")
		})
	}
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	response := httptest.NewRecorder()
	handlers[webhook.PodsPath].ServeHTTP(response, request)
	assert.Equal(t, http.StatusMethodNotAllowed, response.Code)
}

// FuzzReview sends bytes to every webhook: each answer is an admission response or a 4xx, and never a panic (500).
func FuzzReview(f *testing.F) {
	for _, seed := range [][]byte{review(f, gpuPod, nil), review(f, brokenPlaceholder, nil), review(f, brokenPlaceholder, map[string]any{"operation": "UPDATE"}), []byte("{}"), nil} {
		f.Add(seed)
	}
	handlers := exampleHandlers(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{webhook.PodsPath, webhook.MutatePlaceholdersPath, webhook.ValidatePlaceholdersPath} {
			response := post(handlers[path], "application/json", body)
			if response.Code == http.StatusOK {
				var out admissionv1.AdmissionReview
				require.NoError(t, json.Unmarshal(response.Body.Bytes(), &out))
				require.NotNil(t, out.Response)
				continue
			}
			assert.GreaterOrEqual(t, response.Code, 400)
			assert.Less(t, response.Code, 500, response.Body.String())
		}
	})
}
