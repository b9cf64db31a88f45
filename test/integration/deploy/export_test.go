package deploy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Whoever exports the policy for an API server that does not have its kind is told so, and by the next export no more when
// it has.
func TestExportCELWhereItIsNotServed(t *testing.T) {
	var hidden atomic.Bool
	server := httptest.NewServer(apiServer(t, &hidden))
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `
apiVersion: v1
kind: Config
current-context: old
contexts: [{name: old, context: {cluster: old}}]
clusters: [{name: old, cluster: {server: %q}}]
`, server.URL), 0o600))
	export := func() (policies, warnings string) {
		cmd := exec.CommandContext(t.Context(), binary, "export", "cel", "--kubeconfig", kubeconfig,
			"--config", filepath.Join(root, "manifests", "examples", "fine", "warmpool.yaml"))
		var out, errors bytes.Buffer
		cmd.Stdout, cmd.Stderr, cmd.Env = &out, &errors, append(os.Environ(), "HOME="+filepath.Dir(kubeconfig))
		require.NoError(t, cmd.Run(), &errors)
		return out.String(), errors.String()
	}

	hidden.Store(true)
	old, warnings := export()
	assert.Contains(t, warnings, "Warning: cluster "+server.URL+": this API server has no MutatingAdmissionPolicy in "+
		"admissionregistration.k8s.io/v1, which Kubernetes has from 1.36 on: keep the webhook of pods\n")
	hidden.Store(false)
	current, warnings := export()
	assert.NotContains(t, warnings, "this API server")
	assert.Contains(t, current, "kind: MutatingAdmissionPolicy\n")
	assert.Equal(t, current, old, "it may be for a cluster that comes")
}

// apiServer is that of the control plane, which has no MutatingAdmissionPolicy while hidden: it has no flag that takes out
// a single kind.
func apiServer(t *testing.T, hidden *atomic.Bool) http.Handler {
	t.Helper()
	target, err := url.Parse(cp.Config.Host)
	require.NoError(t, err)
	transport, err := rest.TransportFor(cp.Config)
	require.NoError(t, err)
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if hides(r.Out, hidden) {
				r.Out.Header.Set("Accept", "application/json")
				r.Out.Header.Del("Accept-Encoding")
			}
		},
		ModifyResponse: func(r *http.Response) error {
			if !hides(r.Request, hidden) {
				return nil
			}
			var list metav1.APIResourceList
			if err := json.NewDecoder(r.Body).Decode(&list); err != nil {
				return err
			}
			before := len(list.APIResources)
			list.APIResources = slices.DeleteFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == "MutatingAdmissionPolicy" })
			assert.Less(t, len(list.APIResources), before, "there was one to hide")
			text, err := json.Marshal(list)
			if err != nil {
				return err
			}
			r.Header.Set("Content-Length", strconv.Itoa(len(text)))
			closed := r.Body.Close()
			r.Body = io.NopCloser(bytes.NewReader(text))
			return closed
		},
	}
}

func hides(r *http.Request, hidden *atomic.Bool) bool {
	return hidden.Load() && r.URL.Path == "/apis/admissionregistration.k8s.io/v1"
}
