package apiserver_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/install"
	"warmpool.sh/webhook"
)

// memoryLimit is that of the container that ships, in bytes: no request may get it killed.
func memoryLimit(t *testing.T) int64 {
	t.Helper()
	root, err := install.Root()
	require.NoError(t, err)
	objects, err := decodeFile(filepath.Join(root, "manifests", "base", "warmpool", "deployment.yaml"))
	require.NoError(t, err)
	at := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
	require.GreaterOrEqual(t, at, 0)
	var deployment appsv1.Deployment
	require.NoError(t, kruntime.DefaultUnstructuredConverter.FromUnstructured(objects[at].Object, &deployment))
	limit := deployment.Spec.Template.Spec.Containers[0].Resources.Limits.Memory()
	require.Positive(t, limit.Sign())
	return limit.Value()
}

// stranger talks to a warmpool as no one but the API server should.
type stranger struct {
	client http.Client
	base   string
}

func newStranger(port int) *stranger {
	return &stranger{
		client: http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}},
		base:   "https://127.0.0.1:" + strconv.Itoa(port),
	}
}

func (s *stranger) send(t *testing.T, method, path, contentType string, body io.Reader) (int, string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.base+path, body)
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Content-Type", contentType)
	response, err := s.client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

func (s *stranger) post(t *testing.T, path, body string) (int, string, error) {
	t.Helper()
	return s.send(t, http.MethodPost, path, "application/json", strings.NewReader(body))
}

// ask sends a review and returns the response.
func (s *stranger) ask(t *testing.T, path, body string) *admissionv1.AdmissionResponse {
	t.Helper()
	code, text, err := s.post(t, path, body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code, text)
	var review admissionv1.AdmissionReview
	require.NoError(t, json.Unmarshal([]byte(text), &review))
	require.NotNil(t, review.Response)
	return review.Response
}

// reviewOf is an AdmissionReview of a CREATE of the object, which is JSON.
func reviewOf(kind, object string) string {
	gvk := `{"version":"v1","kind":"Pod"}`
	if kind == "Deployment" {
		gvk = `{"group":"apps","version":"v1","kind":"Deployment"}`
	}
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u1","operation":"CREATE","namespace":"team-b","kind":` + gvk + `,"object":` + object + `}}`
}

const workspaceMeta = `"metadata":{"labels":{"` + workspaceLabel + `":"a"}}`

func TestHostileRequests(t *testing.T) {
	deep := strings.Repeat(`[`, 1_000_000)
	cases := []struct {
		name, method, path, contentType, body string
		code                                  int
	}{
		{name: "no request", body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, code: 400},
		{name: "request is null", body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}`, code: 400},
		{name: "request is empty", body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}}`, code: 400},
		{name: "no object", body: strings.Replace(reviewOf("Pod", `1`), `,"object":1`, ``, 1), code: 400},
		{name: "object is null", body: reviewOf("Pod", `null`), code: 400},
		{name: "object is a number", body: reviewOf("Pod", `7`), code: 400},
		{name: "spec of the wrong type", body: reviewOf("Pod", `{"spec":{"tolerations":{"a":1}}}`), code: 400},
		{name: "quantity that is none", body: reviewOf("Pod", `{`+workspaceMeta+`,"spec":{"containers":[{"resources":{"limits":{"cpu":"many"}}}]}}`), code: 400},
		{name: "another kind", body: reviewOf("Deployment", `{}`), code: 400},
		{name: "pod to the placeholders", path: webhook.ValidatePlaceholdersPath, body: reviewOf("Pod", `{}`), code: 400},
		{name: "another version of the review", body: strings.Replace(reviewOf("Pod", `{}`), "admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1), code: 400},
		{name: "nothing", body: ``, code: 400},
		{name: "no JSON", body: `<xml/>`, code: 400},
		{name: "cut off", body: reviewOf("Pod", `{}`)[:100], code: 400},
		{name: "a list", body: `[]`, code: 400},
		{name: "invalid UTF-8", body: reviewOf("Pod", "{\"metadata\":{\"name\":\"\xff\xfe\x00\"}}"), code: 400},
		{name: "deep", body: reviewOf("Pod", `{"spec":`+deep), code: 400},
		{name: "deep where no one looks", body: reviewOf("Pod", `{"x":`+deep), code: 400},
		{name: "8 MiB", body: reviewOf("Pod", `{"x":"`+strings.Repeat("x", 8<<20)+`"}`), code: 413},
		{name: "8 MiB to the placeholders", path: webhook.MutatePlaceholdersPath, body: reviewOf("Deployment", `{"x":"`+strings.Repeat("x", 8<<20)+`"}`), code: 413},
		{name: "wrong content type", contentType: "text/plain", body: reviewOf("Pod", `{}`), code: 415},
		{name: "no content type", contentType: "-", body: reviewOf("Pod", `{}`), code: 415},
		{name: "GET", method: http.MethodGet, code: 405},
		{name: "DELETE", method: http.MethodDelete, code: 405},
		{name: "another path", path: "/", body: reviewOf("Pod", `{}`), code: 404},
	}
	s := newStranger(warmpool.WebhookPort)
	u := newUser(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			method, path, contentType := http.MethodPost, webhook.PodsPath, "application/json"
			if c.method != "" {
				method = c.method
			}
			if c.path != "" {
				path = c.path
			}
			if c.contentType != "" {
				contentType = c.contentType
			}
			code, text, err := s.send(t, method, path, contentType, strings.NewReader(c.body))
			require.NoError(t, err)
			assert.Equal(t, c.code, code, "%.200s", text)
			assert.Less(t, len(text), 1000, "%.200s", text)
			require.NoError(t, u.create(t, u.namespace(t), workspacePod("gpu-a", gpu)).err)
			assertAlive(t, warmpool.PID())
		})
	}
}

// oddSpecs are pod specs in JSON that are odd, or larger than any that a person writes.
func oddSpecs() map[string]string {
	nodeAffinity := func(terms string) string {
		return `"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":` + terms + `}}}`
	}
	antiAffinity := func(terms string) string {
		return `{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[` + terms + `]}}}`
	}
	const term = `{"matchExpressions":[{"key":"k%d","operator":"Exists"}]}`
	return map[string]string{
		"null spec": `null`, "no spec": `{}`, "null lists": `{"containers":null,"tolerations":null,"affinity":null,"initContainers":null}`,
		"empty affinity": `{` + nodeAffinity(`[]`) + `}`, "null terms": `{` + nodeAffinity(`null`) + `}`,
		"20,000 tolerations":         `{"tolerations":[` + each(20_000, `{"key":"example.com/t%d","operator":"Exists"}`) + `]}`,
		"10,000 terms":               `{` + nodeAffinity(`[`+each(10_000, term)+`]`) + `}`,
		"20,000 anti-affinity terms": antiAffinity(strings.Repeat(`{"topologyKey":"zone"},`, 20_000) + `{}`),
		"5,000 NodePools excluded": `{` + nodeAffinity(`[{"matchExpressions":[`+
			each(5_000, `{"key":"karpenter.sh/nodepool","operator":"NotIn","values":["p%d"]}`)+`]}]`) + `}`,
		"3,000 terms beside 3,000 node selectors": `{"nodeSelector":{` + each(3_000, `"s%d":"v"`) + `},` + nodeAffinity(`[`+each(3_000, term)+`]`) + `}`,
		"1,000 anti-affinity terms over 2,000 labels": antiAffinity(each(1_000,
			`{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"other":"v%d"}}}`)),
	}
}

// each is a list of JSON made of the format with the numbers up to n.
func each(n int, format string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(parts, ",")
}

// What is odd but well-formed is answered while the API server waits: a pod is never kept out, a placeholder is refused
// in words.
func TestOddObjects(t *testing.T) {
	mark := `"metadata":{"name":"ph","labels":{"` + poolLabel + `":"gpu-a"}}`
	labels := `"metadata":{"labels":{` + each(2_000, `"l%d":"v"`) + `}}`
	s := newStranger(warmpool.WebhookPort)
	s.client.Timeout = webhookTimeout(t)
	for name, spec := range oddSpecs() {
		t.Run(name, func(t *testing.T) {
			response := s.ask(t, webhook.PodsPath, reviewOf("Pod", `{`+workspaceMeta+`,"spec":`+spec+`}`))
			assert.True(t, response.Allowed)
			d := reviewOf("Deployment", `{`+mark+`,"spec":{"template":{`+labels+`,"spec":`+spec+`}}}`)
			tooLarge := strings.HasPrefix(name, "20,000") || name == "10,000 terms"
			assert.Equal(t, !tooLarge, s.ask(t, webhook.MutatePlaceholdersPath, d).Allowed)
			response = s.ask(t, webhook.ValidatePlaceholdersPath, d)
			assert.False(t, response.Allowed)
			assert.LessOrEqual(t, len(response.Warnings), 10)
			if tooLarge {
				assert.Equal(t, metav1.StatusReasonRequestEntityTooLarge, response.Result.Reason)
			} else if assert.Equal(t, metav1.StatusReasonInvalid, response.Result.Reason) {
				assert.LessOrEqual(t, len(response.Result.Details.Causes), 20)
			}
			assert.Less(t, len(response.Result.Message), 50_000)
			assertAlive(t, warmpool.PID())
		})
	}
	assert.False(t, s.ask(t, webhook.ValidatePlaceholdersPath, reviewOf("Deployment", `{`+mark+`,"spec":null}`)).Allowed)
}

// webhookTimeout is how long the API server waits for an answer.
func webhookTimeout(t *testing.T) time.Duration {
	t.Helper()
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	require.NoError(t, admin.Get(t.Context(), client.ObjectKey{Name: "warmpool"}, configuration))
	require.NotEmpty(t, configuration.Webhooks)
	return time.Duration(*configuration.Webhooks[0].TimeoutSeconds) * time.Second
}

// Many large requests at once, and some that never end, do not fill the memory.
func TestManyLargeRequests(t *testing.T) {
	s := newStranger(warmpool.WebhookPort)
	large := []byte(reviewOf("Pod", `{"x":"`+strings.Repeat("x", 6<<20)+`"}`))
	var group errgroup.Group
	group.SetLimit(10)
	for range 40 {
		group.Go(func() error {
			_, _, err := s.send(t, http.MethodPost, webhook.PodsPath, "application/json", bytes.NewReader(large))
			return err
		})
	}
	require.NoError(t, group.Wait())
	assertAlive(t, warmpool.PID())
	u := newUser(t)
	require.NoError(t, u.create(t, u.namespace(t), workspacePod("gpu-a", gpu)).err)
}

// assertAlive checks that the process runs and, where the kernel tells, that it never needed more than its limit.
func assertAlive(t *testing.T, pid int) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err, "the process has ended")
	for line := range strings.Lines(string(status)) {
		if field, value, _ := strings.Cut(line, ":"); field == "VmHWM" {
			kib, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			require.NoError(t, err)
			assert.Less(t, kib<<10, memoryLimit(t), "bytes at most so far")
		}
	}
}
