package apiserver_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook"
)

// maxMemory is what the process may need at any time, in KiB: a pod with a limit must not be killed by a request.
const maxMemory = 400 << 10

// stranger talks to a warmpool as nobody but the API server should.
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
		{name: "deep where nobody looks", body: reviewOf("Pod", `{"x":`+deep), code: 400},
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

// What is odd but well-formed is answered: a pod is never kept out, a placeholder is refused in words.
func TestOddObjects(t *testing.T) {
	var many []corev1.Toleration
	for i := range 20_000 {
		many = append(many, corev1.Toleration{Key: fmt.Sprintf("example.com/t%d", i), Operator: corev1.TolerationOpExists})
	}
	tolerations, err := json.Marshal(many)
	require.NoError(t, err)
	var terms []string
	for i := range 20_000 {
		terms = append(terms, fmt.Sprintf(`{"matchExpressions":[{"key":"k%d","operator":"Exists"}]}`, i))
	}
	apart := `{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[` + strings.Repeat(`{"topologyKey":"zone"},`, 20_000) + `{}]}}`
	affinity := `{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[` + strings.Join(terms, ",") + `]}}}`
	mark := `"metadata":{"name":"ph","labels":{"` + poolLabel + `":"gpu-a"}}`
	s := newStranger(warmpool.WebhookPort)
	for name, spec := range map[string]string{
		"null spec": `null`, "no spec": `{}`, "null lists": `{"containers":null,"tolerations":null,"affinity":null,"initContainers":null}`,
		"20,000 tolerations": `{"tolerations":` + string(tolerations) + `}`, "20,000 terms": `{"affinity":` + affinity + `}`,
		"20,000 anti-affinity terms": `{"affinity":` + apart + `}`,
		"empty affinity":             `{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[]}}}}`,
		"null terms":                 `{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":null}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			response := s.ask(t, webhook.PodsPath, reviewOf("Pod", `{`+workspaceMeta+`,"spec":`+spec+`}`))
			assert.True(t, response.Allowed)
			d := reviewOf("Deployment", `{`+mark+`,"spec":{"template":{"spec":`+spec+`}}}`)
			assert.True(t, s.ask(t, webhook.MutatePlaceholdersPath, d).Allowed)
			response = s.ask(t, webhook.ValidatePlaceholdersPath, d)
			assert.False(t, response.Allowed)
			assert.Equal(t, metav1.StatusReasonInvalid, response.Result.Reason)
			assert.LessOrEqual(t, len(response.Warnings), 10)
			assert.LessOrEqual(t, len(response.Result.Details.Causes), 20)
			assert.Less(t, len(response.Result.Message), 50_000)
			assertAlive(t, warmpool.PID())
		})
	}
	assert.False(t, s.ask(t, webhook.ValidatePlaceholdersPath, reviewOf("Deployment", `{`+mark+`,"spec":null}`)).Allowed)
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

// assertAlive checks that the process runs and, where the kernel tells, that it never needed more than maxMemory.
func assertAlive(t *testing.T, pid int) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err, "the process has ended")
	for line := range strings.Lines(string(status)) {
		if field, value, _ := strings.Cut(line, ":"); field == "VmHWM" {
			kib, err := strconv.Atoi(strings.Fields(value)[0])
			require.NoError(t, err)
			assert.Less(t, kib, maxMemory, "KiB at most so far")
		}
	}
}
