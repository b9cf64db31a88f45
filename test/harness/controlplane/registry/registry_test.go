package registry

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestImagesAreDeterministic(t *testing.T) {
	digests := map[string]string{}
	for _, seed := range []string{"1", "2"} {
		first, err := NewImage([]byte("program"), 1000, seed)
		require.NoError(t, err)
		second, err := NewImage([]byte("program"), 1000, seed)
		require.NoError(t, err)
		assert.Equal(t, first.Digest(), second.Digest())
		digests[first.Digest()] = seed
	}
	assert.Len(t, digests, 2, "another seed is another image")
}

func TestAnImageIsPulledByTagAndByDigest(t *testing.T) {
	registry := New()
	server := httptest.NewServer(registry)
	defer server.Close()
	image, err := NewImage([]byte("program"), 3*chunk, "1")
	require.NoError(t, err)
	registry.Push("example.com/a/notebook:1", image)

	byTag := get(t, server.URL+"/v2/a/notebook/manifests/1?ns=example.com", http.StatusOK)
	assert.Equal(t, byTag, get(t, server.URL+"/v2/a/notebook/manifests/"+image.Digest()+"?ns=example.com", http.StatusOK))
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	require.NoError(t, json.Unmarshal(byTag, &manifest))
	require.Len(t, manifest.Layers, 2)
	var sent int64
	for _, d := range append(manifest.Layers, manifest.Config) {
		blob := get(t, server.URL+"/v2/a/notebook/blobs/"+d.Digest+"?ns=example.com", http.StatusOK)
		assert.Equal(t, d.Digest, digest(blob))
		assert.Len(t, blob, d.Size)
		sent += int64(len(blob))
	}
	assert.Equal(t, sent, registry.Pulled("127.0.0.1"))
	assert.Zero(t, registry.Pulled("127.0.0.2"))

	get(t, server.URL+"/v2/a/notebook/manifests/1?ns=example.org", http.StatusNotFound)
	get(t, server.URL+"/v2/a/notebook/manifests/2?ns=example.com", http.StatusNotFound)
	get(t, server.URL+"/v2/a/notebook/blobs/"+digest(nil)+"?ns=example.com", http.StatusNotFound)
}

func TestALimitSlowsPullsDown(t *testing.T) {
	registry := New()
	server := httptest.NewServer(registry)
	defer server.Close()
	image, err := NewImage(nil, (10+burst)*chunk, "1")
	require.NoError(t, err)
	registry.Push("example.com/notebook:1", image)
	registry.Limit(20 * chunk)
	began := time.Now()
	for name := range image.blobs {
		get(t, server.URL+"/v2/notebook/blobs/"+name, http.StatusOK)
	}
	assert.Greater(t, time.Since(began), 400*time.Millisecond, "ten chunks after the burst, twenty a second")
}

func get(t *testing.T, url string, status int) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, status, response.StatusCode)
	return body
}
