package webhook_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"warmpool.sh/webhook"
)

// limited serves the handlers over HTTP/2, as the API server is served.
func limited(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	for path, handler := range exampleHandlers(t) {
		mux.Handle(path, handler)
	}
	server := httptest.NewUnstartedServer(mux)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// send sends a body to the pod webhook; length -1 does not tell how long it is.
func send(t *testing.T, server *httptest.Server, body io.Reader, length int64) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+webhook.PodsPath, body)
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.ContentLength = length
	response, err := server.Client().Do(request)
	require.NoError(t, err)
	defer func() { assert.NoError(t, response.Body.Close()) }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response, string(text)
}

// What is small and decodes to much is not decoded: a pod is let through with a warning, a placeholder is refused. Whatever
// the many values are, a tenth of them is decoded.
func TestBoundedDecoding(t *testing.T) {
	handlers := exampleHandlers(t)
	for name, pod := range map[string]func(n int) string{
		"objects":               func(n int) string { return `"spec":{"containers":[` + strings.Repeat("{},", n) + `{}]}` },
		"elements of a list":    func(n int) string { return `"spec":{"containers":[{"args":[` + strings.Repeat(`"",`, n) + `""]}]}` },
		"entries of a map":      func(n int) string { return `"metadata":{"labels":{` + entries(n) + `}}` },
		"entries of quantities": func(n int) string { return `"spec":{"containers":[{"resources":{"limits":{` + entries(n) + `}}}]}` },
	} {
		t.Run(name, func(t *testing.T) {
			failedOpen := metric(t, "warmpool_failed_open_total", "reason=too-large")
			response := admit(t, handlers[webhook.PodsPath], bareReview(podsKind, pod(100_000)))
			assert.True(t, response.Allowed)
			require.Len(t, response.Warnings, 1)
			assert.Regexp(t, `JSON values, more than any real one: it is not decoded, the pod is not placed`, response.Warnings[0])
			assert.Equal(t, failedOpen+1, metric(t, "warmpool_failed_open_total", "reason=too-large"))
			assert.NotContains(t, fmt.Sprint(admit(t, handlers[webhook.PodsPath], bareReview(podsKind, pod(2_000))).Warnings), "not decoded")
		})
	}
	response := admit(t, handlers[webhook.ValidatePlaceholdersPath], bareReview(deploymentsKind, `"spec":{"template":{"spec":{"containers":[`+strings.Repeat("{},", 100_000)+`{}]}}}`))
	assert.False(t, response.Allowed)
	assert.EqualValues(t, http.StatusRequestEntityTooLarge, response.Result.Code)
	assert.Contains(t, response.Result.Message, "remove what a placeholder does not need")
}

const (
	podsKind        = `{"group":"","version":"v1","kind":"Pod"}`
	deploymentsKind = `{"group":"apps","version":"v1","kind":"Deployment"}`
)

func entries(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `"k%d":"1",`, i)
	}
	return text.String() + `"z":"1"`
}

func bareReview(kind, object string) []byte {
	return []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","kind":` + kind + `,"object":{` + object + `}}}`)
}

// Commas and braces in strings are no values: a pod may carry a table or a program.
func TestTextsAreNotCounted(t *testing.T) {
	text := strings.Repeat(`a,b,{\"c\":1}\\,`, 50_000)
	response := admit(t, exampleHandlers(t)[webhook.PodsPath], bareReview(podsKind, `"metadata":{"labels":{"workspace.jupyter.org/workspace-name":"x"}},"spec":{"containers":[{"args":["`+text+`"]}]}`))
	assert.NotEmpty(t, response.Patch)
}

// One large body is read at a time; meanwhile ordinary reviews are answered. A body that does not come gives its place up.
func TestBoundedWork(t *testing.T) {
	server := limited(t)
	refused := metric(t, "warmpool_admissions_refused_total")
	pod := review(t, gpuPod, nil)
	body, writer := io.Pipe()
	var group errgroup.Group
	group.Go(func() error {
		response, _ := send(t, server, body, 7<<20)
		assert.Equal(t, http.StatusBadRequest, response.StatusCode)
		return nil
	})
	require.Eventually(t, func() bool { return metric(t, "warmpool_admissions_in_flight") == 1 }, 10*time.Second, time.Millisecond)
	for _, length := range []int64{-1, 2 << 20} {
		response, text := send(t, server, io.MultiReader(strings.NewReader(strings.Repeat(" ", 2<<20))), length)
		assert.Equal(t, http.StatusTooManyRequests, response.StatusCode, length)
		seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
		require.NoError(t, err)
		assert.Positive(t, seconds)
		assert.Equal(t, "warmpool has as many admission reviews in work as its memory allows; try again in 1 s\n", text)
	}
	assert.Greater(t, metric(t, "warmpool_admissions_refused_total"), refused)
	response, text := send(t, server, bytes.NewReader(pod), int64(len(pod)))
	assert.Equal(t, http.StatusOK, response.StatusCode, text)

	require.NoError(t, group.Wait(), "its deadline has passed")
	require.NoError(t, writer.Close())
	require.Eventually(t, func() bool { return metric(t, "warmpool_admissions_in_flight") == 0 }, 10*time.Second, time.Millisecond)
	response, _ = send(t, server, strings.NewReader(strings.Repeat(" ", 2<<20)), 2<<20)
	assert.Equal(t, http.StatusBadRequest, response.StatusCode, "there is room for a large body again")
}

// Hundreds of ordinary reviews at once are no reason to refuse any.
func TestManyReviewsAtOnce(t *testing.T) {
	server := limited(t)
	pod := review(t, strings.Replace(gpuPod, "image: i", "image: i, args: ["+strings.Repeat("x", 20<<10)+"]", 1), nil)
	var group errgroup.Group
	for range 200 {
		group.Go(func() error {
			response, text := send(t, server, bytes.NewReader(pod), int64(len(pod)))
			assert.Equal(t, http.StatusOK, response.StatusCode, text)
			return nil
		})
	}
	require.NoError(t, group.Wait())
}
