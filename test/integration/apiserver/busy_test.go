package apiserver_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"warmpool.sh/test/harness/install"
	"warmpool.sh/webhook"
)

// A warmpool that has as much in work as it may tells the API server to come again, which it does: the pod is placed.
func TestBusy(t *testing.T) {
	s := newStranger(warmpool.WebhookPort)
	refused, failed := metric(t, "warmpool_admissions_refused_total"), metric(t, "warmpool_failed_open_total")
	var slow errgroup.Group
	const size, count = 1 << 20, 24 // together what may be in work, each no large one
	var ends []*io.PipeWriter
	for range count {
		body, end := io.Pipe()
		ends = append(ends, end)
		slow.Go(func() error {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, s.base+webhook.PodsPath, body)
			request.RequestURI, request.ContentLength = "", size
			request.Header.Set("Content-Type", "application/json")
			response, err := s.client.Do(request)
			if err != nil {
				return err
			}
			if response.StatusCode != http.StatusBadRequest {
				return fmt.Errorf("an empty review is answered with %s", response.Status)
			}
			return response.Body.Close()
		})
	}
	eventually(t, "all that may be is in work", func() bool { return metric(t, "warmpool_admissions_in_flight") == count })
	u := newUser(t)
	namespace := u.namespace(t)
	var users errgroup.Group
	var o *outcome
	users.Go(func() error {
		o = u.create(t, namespace, workspacePod("gpu-a", gpu))
		return o.err
	})
	eventually(t, "the API server is refused", func() bool { return metric(t, "warmpool_admissions_refused_total") > refused })
	for _, end := range ends {
		_, err := end.Write(bytes.Repeat([]byte{' '}, size))
		require.NoError(t, err)
		require.NoError(t, end.Close())
	}
	require.NoError(t, slow.Wait())
	require.NoError(t, users.Wait())
	assert.NotContains(t, asJSON(t, o.got), `"affinity":null`)
	assert.Contains(t, asJSON(t, o.got), `"requiredDuringSchedulingIgnoredDuringExecution"`, "the pod is placed")
	assert.Equal(t, failed+count, metric(t, "warmpool_failed_open_total"), "the slow ones, and no other")
	assert.Zero(t, metric(t, "warmpool_admissions_in_flight"))
}

// Who is not ready says why.
func TestReadinessSaysWhy(t *testing.T) {
	_, _, _, health := unsynced(t)
	assert.ErrorContains(t, install.Get(t.Context(), health+"/readyz"), "[-]facts: initial sync not complete: not all watched kinds have been listed")
	assert.ErrorContains(t, install.Get(t.Context(), health+"/readyz"), "[+]webhook ok")
}
