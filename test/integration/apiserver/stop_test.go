package apiserver_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admission/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/test/harness/needs"
	"warmpool.sh/webhook"
)

const callerName = "kube-apiserver-webhooks"

// guarded is a cluster whose API server shows webhooks a client certificate, and whose warmpools answer no one else.
type guarded struct {
	*controlplane.ControlPlane
	shipped []*unstructured.Unstructured
	caFile  string // that the warmpools read
	caller  tls.Certificate
}

func newGuarded(t *testing.T) (*guarded, *install.Warmpool) {
	t.Helper()
	needs.Check(t, needs.ControlPlane, controlplane.Ready(t.Context(), controlplane.Options{}))
	cluster, err := controlplane.Start(t.Context(), controlplane.Options{WebhookClientName: callerName})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
	g := &guarded{ControlPlane: cluster, caFile: filepath.Join(t.TempDir(), "ca.crt")}
	ca, err := os.ReadFile(filepath.Join(cluster.Dir, "ca.crt"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(g.caFile, ca, 0o600))
	kubeconfig, err := clientcmd.LoadFromFile(filepath.Join(cluster.Dir, "webhooks.kubeconfig"))
	require.NoError(t, err)
	user := kubeconfig.AuthInfos["*"]
	g.caller, err = tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData)
	require.NoError(t, err)

	root, err := install.Root()
	require.NoError(t, err)
	crds, err := install.CRDs(root)
	require.NoError(t, err)
	require.NoError(t, cluster.Apply(t.Context(), crds...))
	g.shipped, err = install.Render(filepath.Join(root, "manifests", "overlays", "embedded"))
	require.NoError(t, err)
	at := slices.IndexFunc(g.shipped, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "Deployment" && o.GetName() == install.Deployment
	})
	containers, _, err := unstructured.NestedSlice(g.shipped[at].Object, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	container, ok := containers[0].(map[string]any)
	require.True(t, ok)
	args, ok := container["args"].([]any)
	require.True(t, ok)
	container["args"] = append(args, "--client-ca-file="+g.caFile, "--client-name="+callerName, "--shutdown-delay=5s")
	require.NoError(t, unstructured.SetNestedSlice(g.shipped[at].Object, containers, "spec", "template", "spec", "containers"))
	port, err := controlplane.FreePort()
	require.NoError(t, err)
	local, err := install.Localize(g.shipped, port)
	require.NoError(t, err)
	require.NoError(t, cluster.Apply(t.Context(), local...))
	return g, g.start(t, port)
}

func (g *guarded) start(t *testing.T, port int) *install.Warmpool {
	t.Helper()
	w, err := install.Start(t.Context(), g.ControlPlane, filepath.Join(cp.Dir, "warmpool"), g.shipped, port)
	require.NoError(t, err)
	return w
}

// greet does a handshake and tells what becomes of it, which the client of TLS 1.3 learns when it reads.
func greet(port int, config *tls.Config) error {
	config.InsecureSkipVerify, config.NextProtos = true, []string{"h2"}
	connection, err := tls.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port), config)
	if err != nil {
		return err
	}
	defer connection.Close()                          //nolint:errcheck // it was only read from
	_, err = io.ReadFull(connection, make([]byte, 1)) // a server of HTTP/2 speaks first
	return err
}

// Only the API server is answered, by the CA file as it is now, and no old TLS is spoken. Refused callers are counted,
// warmpool's own probe is none.
func TestOnlyTheAPIServerIsAnswered(t *testing.T) {
	g, w := newGuarded(t)
	u := newUserOf(t, g.Config)
	broken := complete(t)
	broken.Spec.Template.Spec.Affinity.PodAntiAffinity = nil
	answered := func() bool {
		_, err := u.AppsV1().Deployments("default").Create(t.Context(), broken, dryRun)
		return apierrors.IsInvalid(err) && strings.Contains(err.Error(), `admission webhook "placeholders.warmpool.sh" denied`)
	}
	eventually(t, "the API server's certificate is accepted", answered)

	refused := func(reason string) float64 {
		return metricAt(t, w.MetricsURL, "warmpool_callers_refused_total", `reason="`+reason+`"`)
	}
	none, untrusted := refused("no-certificate"), refused("untrusted")
	require.ErrorContains(t, greet(w.WebhookPort, &tls.Config{}), "bad certificate")
	withCert := func() *tls.Config { return &tls.Config{Certificates: []tls.Certificate{g.caller}} }
	require.NoError(t, greet(w.WebhookPort, withCert()))
	old := withCert()
	old.MaxVersion = tls.VersionTLS12
	require.ErrorContains(t, greet(w.WebhookPort, old), "protocol version not supported")

	ca, err := os.ReadFile(g.caFile)
	require.NoError(t, err)
	other, err := os.ReadFile(filepath.Join(cp.Dir, "ca.crt"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(g.caFile, other, 0o600))
	require.ErrorContains(t, greet(w.WebhookPort, withCert()), "bad certificate")
	require.NoError(t, os.WriteFile(g.caFile, slices.Concat(other, ca), 0o600))
	require.NoError(t, greet(w.WebhookPort, withCert()))
	for range 3 {
		require.NoError(t, install.Get(t.Context(), w.HealthURL+"/readyz"))
	}
	assert.Equal(t, none+1, refused("no-certificate"))
	assert.Equal(t, untrusted+1, refused("untrusted"))
	assert.True(t, answered())
	g.stop(t, w)
}

// stop stops a replica, the leader of two, under load: no request fails, also one that is under way when the server closes
// its port, and the lease is free at once.
func (g *guarded) stop(t *testing.T, leaving *install.Warmpool) {
	t.Helper()
	admin, err := client.New(g.Config, client.Options{})
	require.NoError(t, err)
	holder := func() string {
		lease := &coordinationv1.Lease{}
		if err := admin.Get(t.Context(), client.ObjectKey{Namespace: install.Namespace, Name: "warmpool"}, lease); err != nil || lease.Spec.HolderIdentity == nil {
			return ""
		}
		return *lease.Spec.HolderIdentity
	}
	eventually(t, "there is a leader", func() bool { return holder() != "" })
	leader := holder()
	port, err := controlplane.FreePort()
	require.NoError(t, err)
	staying := g.start(t, port)

	transport := &http.Transport{ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{g.caller}, RootCAs: x509.NewCertPool()}}
	callers := &http.Client{Transport: transport}
	review := reviewOf("Pod", `{`+workspaceMeta+`,"spec":{}}`)
	ask := func(ctx context.Context, callers *http.Client, port int, body io.Reader) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("https://127.0.0.1:%d%s", port, webhook.PodsPath), body)
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := callers.Do(request)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(response.Body)
		var answer admissionv1.AdmissionReview
		if err := errors.Join(err, response.Body.Close(), json.Unmarshal(text, &answer)); err != nil {
			return fmt.Errorf("%s %.200s: %w", response.Status, text, err)
		}
		if answer.Response == nil || !answer.Response.Allowed {
			return fmt.Errorf("%s %.200s", response.Status, text)
		}
		return nil
	}

	// As the endpoints of a Service, the load follows readiness, some time later.
	var target atomic.Int64
	target.Store(int64(leaving.WebhookPort))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var load errgroup.Group
	var answered atomic.Int64
	for range 8 {
		load.Go(func() error {
			for ctx.Err() == nil {
				if err := ask(t.Context(), callers, int(target.Load()), strings.NewReader(review)); err != nil {
					return err
				}
				answered.Add(1)
			}
			return nil
		})
	}
	eventually(t, "there is load", func() bool { return answered.Load() > 100 })
	var stopped errgroup.Group
	stopped.Go(leaving.Stop)
	eventually(t, "it says that it stops", func() bool {
		err := install.Get(t.Context(), leaving.HealthURL+"/readyz")
		return err != nil && strings.Contains(err.Error(), "503 Service Unavailable: stopping")
	})
	before := answered.Load()
	// Few: each needs a connection of its own now, and the port is open for the delay only.
	eventually(t, "it goes on answering", func() bool { return answered.Load() > before+10 })
	slow, body := newSlow(review)
	// On a connection of its own: that of the others is being given up.
	alone := &http.Client{Transport: transport.Clone()}
	load.Go(func() error { return ask(t.Context(), alone, leaving.WebhookPort, slow) })
	body.begin(t)
	target.Store(int64(staying.WebhookPort))
	eventually(t, "it closes its port", func() bool {
		connection, err := net.DialTimeout("tcp", "127.0.0.1:"+strconv.Itoa(leaving.WebhookPort), time.Second)
		return err != nil || connection.Close() != nil
	})
	body.end(t)
	require.NoError(t, stopped.Wait(), "it ends with exit code 0")
	before = answered.Load()
	eventually(t, "the other answers", func() bool { return answered.Load() > before+100 })
	cancel()
	require.NoError(t, load.Wait(), "after %d answers", answered.Load())
	assert.NotEqual(t, leader, holder(), "the lease is released")
}

// slowBody is sent in two parts.
type slowBody struct {
	writer *io.PipeWriter
	text   []byte
}

func newSlow(text string) (io.Reader, *slowBody) {
	reader, writer := io.Pipe()
	return reader, &slowBody{writer, []byte(text)}
}

func (b *slowBody) begin(t *testing.T) {
	t.Helper()
	n, err := io.Copy(b.writer, bytes.NewReader(b.text[:len(b.text)/2]))
	require.NoError(t, err)
	b.text = b.text[n:]
}

func (b *slowBody) end(t *testing.T) {
	t.Helper()
	_, err := b.writer.Write(b.text)
	require.NoError(t, err)
	require.NoError(t, b.writer.Close())
}
