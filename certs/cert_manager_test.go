package certs

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/controlplane"
	shipped "warmpool.sh/test/harness/install"
	"warmpool.sh/test/harness/needs"
)

// certManager is a warmpool that runs as the overlay for cert-manager ships it,
// and plays cert-manager and its cainjector, which have no place here.
type certManager struct {
	*install
	cluster *controlplane.ControlPlane
	objects []*unstructured.Unstructured // as shipped
	process *shipped.Warmpool
	dir     string // where the Secret is mounted

	certificate *unstructured.Unstructured // whose Secret is mounted
	ca          *x509.Certificate
	caKey       []byte
}

// The overlay applies where cert-manager is, and warmpool serves what cert-manager
// makes, is ready when its cainjector has written caBundle, and never writes it.
func TestCertManager(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	m := startCertManager(t)
	ctx := t.Context()

	t.Log("ready, with the metric of the certificate that is served")
	require.NoError(t, shipped.Get(ctx, m.process.HealthURL+"/readyz"))
	first := m.served(t, m.ca)
	m.waitForMetric(t, first)

	t.Log("a renewed certificate is served without a restart")
	m.issue(t, time.Now().Add(2*time.Hour))
	require.Eventually(t, func() bool { return !m.served(t, m.ca).Equal(first) }, soon, 50*time.Millisecond)
	m.waitForMetric(t, m.served(t, m.ca))

	t.Log("the overlay is what users apply, and placeholders in it are judged")
	stdout, _, err := m.cluster.Kubectl(ctx, "", "apply", "--dry-run=server", "-k", filepath.Join("..", "manifests", "overlays", "cert-manager"))
	require.NoError(t, err)
	for _, applied := range []string{"issuer.cert-manager.io/warmpool-selfsigned ", "certificate.cert-manager.io/warmpool-webhook ", "deployment.apps/spaces-placeholder-cpu "} {
		require.Contains(t, stdout, applied)
	}

	t.Log("applied again, by whatever means, caBundle stays")
	configurations := overlay(t, "cert-manager", isWebhookConfiguration)
	for _, how := range [][]string{{"apply"}, {"apply", "--server-side", "--field-manager=gitops", "--force-conflicts"}} {
		kubectl(t, m.cluster, configurations, append(how, "-f", "-")...)
		bundle, err := m.bundle(ctx)
		require.NoError(t, err)
		require.Equal(t, string(pemOf(m.ca)), string(bundle))
	}

	t.Log("not ready while it is not trusted, and caBundle is left to others")
	m.inject(t, []byte{})
	m.waitForReason(t, "it has no caBundle: cert-manager's cainjector writes caBundle")
	require.Never(t, func() bool { return shipped.Get(ctx, m.process.HealthURL+"/readyz") == nil }, 3*time.Second, 100*time.Millisecond)
	m.inject(t, pemOf(m.ca))
	m.waitForReason(t, "")

	t.Log("a CA that is renewed changes nothing until the certificate is, too")
	before := m.ca
	m.rotate(t)
	require.Error(t, m.served(t, before).CheckSignatureFrom(m.ca), "the CA has another key")
	m.waitForReason(t, "")
	m.issue(t, time.Now().Add(time.Hour))
	m.inject(t, pemOf(m.ca))
	m.waitForReason(t, "")
	require.NoError(t, m.served(t, m.ca).CheckSignatureFrom(m.ca))

	t.Log("not ready while it is expired")
	m.issue(t, time.Now().Add(-time.Minute))
	m.waitForReason(t, "the serving certificate expired at ")
	m.issue(t, time.Now().Add(time.Hour))
	m.waitForReason(t, "")

	objects, err := m.configurations(ctx)
	require.NoError(t, err)
	for _, object := range objects {
		for _, entry := range object.GetManagedFields() {
			assert.NotContains(t, entry.Manager, "warmpool")
		}
	}
	m.checkRights(t)
}

// Everything is applied before there is a certificate, as kubectl apply -k does.
func startCertManager(t *testing.T) *certManager {
	t.Helper()
	needs.Check(t, needs.ControlPlane, controlplane.Ready(t.Context(), controlplane.Options{}))
	cluster, err := controlplane.Start(t.Context(), controlplane.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
	c, err := client.New(cluster.Config, client.Options{})
	require.NoError(t, err)
	root, err := shipped.Root()
	require.NoError(t, err)
	port, err := controlplane.FreePort()
	require.NoError(t, err)
	objects, err := shipped.Render(filepath.Join(root, "manifests", "overlays", "cert-manager"))
	require.NoError(t, err)
	local, err := shipped.Localize(objects, port)
	require.NoError(t, err)
	require.NoError(t, cluster.Apply(t.Context(), append(certManagerCRDs(t), local...)...))

	m := &certManager{cluster: cluster, objects: objects, dir: t.TempDir(), install: &install{admin: c, Options: Options{
		Namespace: "warmpool-system", MutatingConfiguration: "warmpool", ValidatingConfiguration: "warmpool", PodsConfiguration: "warmpool-pods",
	}}}
	m.certificate = m.mounted(t)
	m.rotate(t)
	m.issue(t, time.Now().Add(time.Hour))
	m.inject(t, pemOf(m.ca))
	binary, err := shipped.Build(t.Context(), root, cluster.Dir)
	require.NoError(t, err)
	m.process, err = shipped.Start(t.Context(), cluster, binary, objects, port, "--cert-dir="+m.dir)
	require.NoError(t, err)
	return m
}

// certManagerCRDs are those of the module that go.mod names.
func certManagerCRDs(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager").Output()
	require.NoError(t, err)
	var crds []*unstructured.Unstructured
	for _, name := range []string{"issuers", "certificates"} {
		content, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "deploy", "crds", "cert-manager.io_"+name+".yaml"))
		require.NoError(t, err)
		decoded, err := controlplane.Decode(bytes.NewReader(content))
		require.NoError(t, err)
		crds = append(crds, decoded...)
	}
	return crds
}

// mounted follows --cert-dir of the Deployment to its volume, its Secret, and the
// Certificate that fills it.
func (m *certManager) mounted(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	var deployment appsv1.Deployment
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(m.find(t, "Deployment", "warmpool").Object, &deployment))
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	require.Contains(t, container.Args, "--certs=cert-manager")
	secrets := map[string]string{} // by volume
	for _, volume := range pod.Volumes {
		if volume.Secret != nil {
			secrets[volume.Name] = volume.Secret.SecretName
		}
	}
	for _, mount := range container.VolumeMounts {
		for _, object := range m.objects {
			secret, _, _ := unstructured.NestedString(object.Object, "spec", "secretName")
			if object.GetKind() == "Certificate" && secret == secrets[mount.Name] {
				require.Contains(t, container.Args, "--cert-dir="+mount.MountPath)
				return object
			}
		}
	}
	require.Fail(t, "no Certificate fills a Secret that is mounted")
	return nil
}

func (m *certManager) find(t *testing.T, kind, name string) *unstructured.Unstructured {
	t.Helper()
	for _, object := range m.objects {
		if object.GetKind() == kind && object.GetName() == name {
			return object
		}
	}
	require.Fail(t, "not shipped: "+kind+" "+name)
	return nil
}

// served is the certificate that an API server gets that trusts the CA.
func (m *certManager) served(t *testing.T, ca *x509.Certificate) *x509.Certificate {
	t.Helper()
	cert, err := m.dial(net.JoinHostPort("127.0.0.1", strconv.Itoa(m.process.WebhookPort)), pemOf(ca))
	require.NoError(t, err)
	return cert
}

func (m *certManager) waitForMetric(t *testing.T, cert *x509.Certificate) {
	t.Helper()
	want := fmt.Sprintf("warmpool_certificate_expiry_timestamp_seconds %s\n", strconv.FormatFloat(float64(cert.NotAfter.Unix()), 'g', -1, 64))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, m.process.MetricsURL, nil)
	require.NoError(t, err)
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer response.Body.Close() //nolint:errcheck // only read from
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.Contains(t, string(text), want)
	}, soon, 50*time.Millisecond)
}

// waitForReason waits until /readyz says so; it is empty when that is ready.
func (m *certManager) waitForReason(t *testing.T, want string) {
	t.Helper()
	ctx := t.Context()
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		err := shipped.Get(ctx, m.process.HealthURL+"/readyz")
		if want == "" {
			require.NoError(t, err)
			return
		}
		require.ErrorContains(t, err, want)
	}, soon, 50*time.Millisecond)
}

// checkRights makes sure that nothing is allowed that only the embedded mode needs.
func (m *certManager) checkRights(t *testing.T) {
	t.Helper()
	for _, forbidden := range [][]string{
		{"patch", "mutatingwebhookconfigurations/warmpool"},
		{"patch", "mutatingwebhookconfigurations/warmpool-pods"},
		{"patch", "validatingwebhookconfigurations/warmpool"},
		{"create", "secrets"},
		{"get", "secrets"},
		{"list", "secrets/warmpool-ca"},
		{"update", "secrets/warmpool-ca"},
	} {
		args := append([]string{"auth", "can-i", "--quiet", "-n", m.Namespace, "--as=system:serviceaccount:" + m.Namespace + ":warmpool"}, forbidden...)
		_, _, err := m.cluster.Kubectl(t.Context(), "", args...)
		assert.Error(t, err, forbidden)
	}
}
