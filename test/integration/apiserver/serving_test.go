package apiserver_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/webhook"
)

func TestReadyAfterStart(t *testing.T) {
	for _, path := range []string{"/readyz", "/healthz"} {
		assert.NoError(t, install.Get(t.Context(), warmpool.HealthURL+path))
	}
}

// Hundreds of pods at once: each is created, and each is placed.
func TestManyPodsAtOnce(t *testing.T) {
	u := newUser(t)
	namespace := u.namespace(t)
	failed := metric(t, "warmpool_failed_open_total")
	const count = 300
	var group errgroup.Group
	group.SetLimit(100)
	for i := range count {
		group.Go(func() error {
			pod := workspacePod("gpu-a", gpu)
			if i%2 == 0 {
				pod = workspacePod("teams")
			}
			_, err := u.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
			return err
		})
	}
	require.NoError(t, group.Wait())
	pods, err := u.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, pods.Items, count)
	for i := range pods.Items {
		pod := &pods.Items[i]
		terms := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		assert.Equal(t, []string{pod.Labels[poolLabel]}, terms[0].MatchExpressions[0].Values)
		added := map[string]int{"gpu-a": 2, "teams": 1}[pod.Labels[poolLabel]]
		assert.Len(t, pod.Spec.Tolerations, 2+added)
	}
	assert.Equal(t, failed, metric(t, "warmpool_failed_open_total"))
	assert.Empty(t, u.warnings(t))
}

// Before warmpool has read the cluster it keeps no pod waiting: the pod passes unplaced, with a warning. Placeholders are
// left to their failure policy.
func TestNotSyncedYet(t *testing.T) {
	process, port, metrics, health := unsynced(t)
	s := newStranger(port)
	failed := metricAt(t, metrics, "warmpool_failed_open_total", `reason="not-synced"`)
	response := s.ask(t, webhook.PodsPath, reviewOf("Pod", `{`+workspaceMeta+`,"spec":{}}`))
	assert.True(t, response.Allowed)
	assert.Empty(t, response.Patch)
	warned(t, response.Warnings, "warmpool has not read the cluster yet")
	assert.Equal(t, failed+1, metricAt(t, metrics, "warmpool_failed_open_total", `reason="not-synced"`))
	for _, path := range []string{webhook.MutatePlaceholdersPath, webhook.ValidatePlaceholdersPath} {
		code, text, err := s.post(t, path, reviewOf("Deployment", `{"spec":null}`))
		require.NoError(t, err)
		assert.Equal(t, 500, code)
		assert.Contains(t, text, "has not read the cluster yet")
	}
	assert.NoError(t, install.Get(t.Context(), health+"/healthz"))
	assert.Error(t, install.Get(t.Context(), health+"/readyz"))
	assertAlive(t, process.PID())
}

// unsynced is a warmpool whose API server answers everything but the list of nodes.
func unsynced(t *testing.T) (process *controlplane.Process, port int, metricsURL, healthURL string) {
	t.Helper()
	target, err := url.Parse(cp.Config.Host)
	require.NoError(t, err)
	transport, err := rest.TransportFor(cp.Config)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = transport
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/nodes" {
			<-r.Context().Done()
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(api.Close)
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	require.NoError(t, err)
	write("tls.crt", certificate)
	write("tls.key", key)
	kubeconfig := write("kubeconfig", fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: "%s"}}]}`, api.URL))
	configuration, err := os.ReadFile(warmpool.ConfigFile)
	require.NoError(t, err)
	local := func(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
	process, err = cp.Run(t.Context(), controlplane.Program{
		Name: "unsynced", Path: filepath.Join(cp.Dir, "warmpool"), Ports: 3,
		Command: func(ports []int) (args, env []string) {
			return []string{"serve", "--config=" + write("warmpool.yaml", configuration), "--kubeconfig=" + kubeconfig,
				"--certs=files", "--cert-dir=" + dir, "--bind-address=127.0.0.1", "--port=" + strconv.Itoa(ports[0]),
				"--metrics-bind-address=" + local(ports[1]), "--health-probe-bind-address=" + local(ports[2])}, nil
		},
		Ready: func(ctx context.Context, ports []int) error {
			dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
			connection, err := dialer.DialContext(ctx, "tcp", local(ports[0]))
			if err != nil {
				return err
			}
			return connection.Close()
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, process.Kill()) })
	return process, process.Ports[0], "http://" + local(process.Ports[1]) + "/metrics", "http://" + local(process.Ports[2])
}

// A pod that its creator bound to a node already is past placement.
func TestBoundPodsStay(t *testing.T) {
	u := newUser(t)
	pod := workspacePod("gpu-a", gpu)
	pod.Spec.NodeName = "hyperpod-i-00000000000000001"
	o := u.create(t, u.namespace(t), pod)
	o.same(t)
	require.IsType(t, &corev1.Pod{}, o.got)
}
