package webhook_test

import (
	"bytes"
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

// What is small and decodes to much is refused before it is decoded, and leaves room for others.
func TestBoundedDecoding(t *testing.T) {
	server := limited(t)
	containers := strings.Repeat("{},", 100_000) + "{}"
	body := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","object":{"spec":{"containers":[` + containers + `]}}}}`
	for range 3 {
		response, text := send(t, server, strings.NewReader(body), int64(len(body)))
		assert.Equal(t, http.StatusRequestEntityTooLarge, response.StatusCode)
		assert.Contains(t, text, "100005 JSON objects, more than warmpool's memory allows")
	}
	pod := review(t, gpuPod, nil)
	response, _ := send(t, server, bytes.NewReader(pod), int64(len(pod)))
	assert.Equal(t, http.StatusOK, response.StatusCode)
}

// Bodies of any size fill what is allowed; then others are told to come again, until one of these is done.
func TestBoundedWork(t *testing.T) {
	server := limited(t)
	refused := metric(t, "warmpool_admissions_refused_total")
	pod := review(t, gpuPod, nil)
	var group errgroup.Group
	var slow []*io.PipeWriter
	for i := range 8 {
		body, writer := io.Pipe()
		slow = append(slow, writer)
		length := int64(-1)
		if i%2 == 0 {
			length = 7 << 20
		}
		group.Go(func() error {
			response, _ := send(t, server, body, length)
			assert.Equal(t, http.StatusBadRequest, response.StatusCode)
			return nil
		})
	}
	require.Eventually(t, func() bool { return metric(t, "warmpool_admissions_in_flight") == 8 }, 10*time.Second, time.Millisecond)
	response, text := send(t, server, bytes.NewReader(pod), int64(len(pod)))
	assert.Equal(t, http.StatusTooManyRequests, response.StatusCode)
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	require.NoError(t, err)
	assert.Positive(t, seconds)
	assert.Equal(t, "warmpool has 56 MiB of admission reviews in work, as much as its memory allows; try again in 1 s\n", text)
	assert.Equal(t, refused+1, metric(t, "warmpool_admissions_refused_total"))

	require.NoError(t, slow[1].Close(), "its body ends")
	require.Eventually(t, func() bool { return metric(t, "warmpool_admissions_in_flight") == 7 }, 10*time.Second, time.Millisecond)
	response, text = send(t, server, bytes.NewReader(pod), int64(len(pod)))
	assert.Equal(t, http.StatusOK, response.StatusCode, text)

	// The others never end. They do not keep their places.
	require.NoError(t, group.Wait())
	require.Eventually(t, func() bool { return metric(t, "warmpool_admissions_in_flight") == 0 }, 10*time.Second, time.Millisecond)
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
