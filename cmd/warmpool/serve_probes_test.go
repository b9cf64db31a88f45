package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"
)

// managerOf has what probes need of a manager: it keeps log lines and Events.
type managerOf struct {
	manager.Manager
	logged, events []string
}

func (m *managerOf) GetLogger() logr.Logger {
	return funcr.New(func(_, args string) { m.logged = append(m.logged, args) }, funcr.Options{})
}

func (m *managerOf) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	m.events = append(m.events, kind+" "+reason+" "+fmt.Sprintf(note, args...))
}

func ready(p *probes, url string) (int, string) {
	response := httptest.NewRecorder()
	p.serveReady(response, httptest.NewRequest(http.MethodGet, url, nil))
	return response.Code, response.Body.String()
}

// Whoever asks, be it for a moment and a thousand times, changes nothing of what is answered, and has it looked up once.
func TestStrangersAskForReadiness(t *testing.T) {
	m := &managerOf{}
	p, err := newProbes(m, "0", m)
	require.NoError(t, err)
	looks := 0
	require.NoError(t, p.AddReadyzCheck("webhook", func(r *http.Request) error { looks++; return r.Context().Err() }))
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	for range 1000 {
		p.serveReady(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, http.MethodGet, "/readyz", nil))
	}
	code, _ := ready(p, "/readyz")
	assert.Equal(t, http.StatusOK, code)
	assert.Less(t, looks, 5)
	assert.Empty(t, m.events)
}

// Readiness says what is wrong to who asks, in the log and by an Event, and says it once.
func TestReadiness(t *testing.T) {
	t.Setenv("POD_NAME", "warmpool-1")
	t.Setenv("POD_NAMESPACE", "warmpool-system")
	m := &managerOf{}
	p, err := newProbes(m, "0", m)
	require.NoError(t, err)
	fault := errors.New("initial sync not complete: not all watched kinds have been listed")
	require.NoError(t, p.AddReadyzCheck("webhook", func(*http.Request) error { return nil }))
	require.NoError(t, p.AddReadyzCheck("facts", func(*http.Request) error { return fault }))
	require.Error(t, p.AddReadyzCheck("facts", func(*http.Request) error { return nil }))
	for range 3 {
		code, body := ready(p, "/readyz")
		assert.Equal(t, http.StatusServiceUnavailable, code)
		assert.Equal(t, "[-]facts: initial sync not complete: not all watched kinds have been listed\n[+]webhook ok\n", body)
	}
	fault, p.looked = nil, readiness{}
	for range 3 {
		code, body := ready(p, "/readyz")
		assert.Equal(t, http.StatusOK, code)
		assert.Equal(t, "ok", body)
	}
	_, body := ready(p, "/readyz?verbose")
	assert.Equal(t, "[+]facts ok\n[+]webhook ok\n", body)

	ctx, signal := context.WithCancel(t.Context())
	late := p.stopAfter(ctx, time.Millisecond)
	require.NoError(t, late.Err())
	signal()
	<-late.Done()
	code, body := ready(p, "/readyz")
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Equal(t, "stopping\n", body)

	require.Len(t, m.logged, 4, "%q", m.logged)
	assert.Contains(t, m.logged[0], `"not ready" "reason"="facts: initial sync not complete: not all watched kinds have been listed"`)
	assert.Contains(t, m.logged[1], `"ready"`)
	assert.Contains(t, m.logged[2], `"stopping: not ready from now on, still serving"`)
	assert.Contains(t, m.logged[3], `"not ready" "reason"="stopping"`)
	assert.Equal(t, []string{"Warning NotReady facts: initial sync not complete: not all watched kinds have been listed"}, m.events)
}

// From the signal to stop on, a caller is answered and then connects anew.
func TestSendAway(t *testing.T) {
	p, err := newProbes(&managerOf{}, "0", nil)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(p.sendAway(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	reused := func() (again bool) {
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { again = i.Reused }})
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader("{}"))
		require.NoError(t, err)
		response, err := server.Client().Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, 2, response.ProtoMajor)
		return again
	}
	assert.False(t, reused())
	assert.True(t, reused())
	ctx, signal := context.WithCancel(t.Context())
	p.stopAfter(ctx, time.Hour)
	signal()
	require.Eventually(t, func() bool { return !reused() }, time.Minute, time.Millisecond)
}

// The kubelet must not end the process before it has stopped by itself.
func TestGracePeriod(t *testing.T) {
	manifest, err := os.ReadFile(filepath.Join("..", "..", "manifests", "base", "warmpool", "deployment.yaml"))
	require.NoError(t, err)
	var found []string
	for document := range strings.SplitSeq(string(manifest), "\n---\n") {
		var deployment appsv1.Deployment
		require.NoError(t, yaml.Unmarshal([]byte(document), &deployment))
		if deployment.Kind != "Deployment" {
			continue
		}
		found = append(found, deployment.Name)
		delay, err := newServeCommand().Flags().GetDuration("shutdown-delay")
		require.NoError(t, err)
		grace := deployment.Spec.Template.Spec.TerminationGracePeriodSeconds
		require.NotNil(t, grace)
		assert.Greater(t, time.Duration(*grace)*time.Second, delay+drainTimeout)
		assert.Nil(t, deployment.Spec.Template.Spec.Containers[0].Lifecycle, "it would wait twice")
	}
	assert.Equal(t, []string{"warmpool"}, found)
}

func TestServerProbe(t *testing.T) {
	request := httptest.NewRequest(http.MethodGet, "/readyz", nil)
	probe := serverProbe{listen(t, tlsOptions{minVersion: "VersionTLS13"}), probeName}
	require.NoError(t, probe.check(request))
	silent, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{newSigner(t).sign(t, "server", x509.ExtKeyUsageServerAuth)}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, silent.Close()) })
	go func() {
		for {
			connection, err := silent.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, connection) }() // a handshake, and no answer
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	probe.address = silent.Addr().String()
	require.ErrorContains(t, probe.check(request.WithContext(ctx)), "does not answer a request")
	probe.address = "127.0.0.1:0"
	require.ErrorContains(t, probe.check(request), "the webhook server does not answer")
	assert.NotEqual(t, newServerProbe("", 1).name, newServerProbe("", 1).name)
}

// sumOf is the sum of a metric over the series that have the label value.
func sumOf(t *testing.T, name, value string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	require.NoError(t, err)
	sum := 0.0
	for _, family := range families {
		for _, series := range family.GetMetric() {
			if label := series.GetLabel(); family.GetName() == name && len(label) == 1 && label[0].GetValue() == value {
				sum += series.GetCounter().GetValue()
			}
		}
	}
	return sum
}

func TestMetricsAreWellNamed(t *testing.T) {
	configReloads.WithLabelValues("applied")
	families, err := metrics.Registry.Gather()
	require.NoError(t, err)
	own := slices.Collect(func(yield func(string) bool) {
		for _, family := range families {
			if strings.HasPrefix(family.GetName(), "warmpool_") && !yield(family.GetName()) {
				return
			}
		}
	})
	for _, name := range []string{"warmpool_config_reloads_total", "warmpool_config_applied_timestamp_seconds", "warmpool_config_last_reload_successful", "warmpool_snapshot_timestamp_seconds", "warmpool_callers_refused_total"} {
		assert.Contains(t, own, name)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	require.NoError(t, err)
	for _, problem := range problems {
		assert.NotContains(t, own, problem.Metric, problem.Text)
	}
}
