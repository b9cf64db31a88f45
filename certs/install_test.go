package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"
)

// soon bounds every wait. Things take about a second each, or settle.
const soon = time.Minute

// install is warmpool's namespace, rights and webhook configurations, as the
// manifests make them, on a real API server.
type install struct {
	Options
	admin client.Client
	user  *rest.Config // the ServiceAccount, with no right that doc.go does not list
	log   logr.Logger  // of the replicas
}

func newInstall(t *testing.T, admin *rest.Config, namespace string) *install {
	t.Helper()
	configuration := namespace // configurations are in no namespace, so they need names of their own
	c, err := client.New(admin, client.Options{})
	require.NoError(t, err)
	user := rest.CopyConfig(admin)
	account := "system:serviceaccount:" + namespace + ":warmpool"
	user.Impersonate = rest.ImpersonationConfig{UserName: account, Groups: []string{"system:authenticated"}}
	i := &install{admin: c, user: user, log: logr.Discard(), Options: Options{
		Namespace: namespace, MutatingConfiguration: configuration, ValidatingConfiguration: configuration, PodsConfiguration: configuration + "-pods",
	}}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: account}}
	meta := metav1.ObjectMeta{Name: configuration, Namespace: namespace}
	clusterMeta := metav1.ObjectMeta{Name: configuration}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
			{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"warmpool-ca"},
				Verbs: []string{"list", "watch", "update"}},
		}},
		&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: configuration}},
		&rbacv1.ClusterRole{ObjectMeta: clusterMeta, Rules: []rbacv1.PolicyRule{{
			APIGroups:     []string{"admissionregistration.k8s.io"},
			Resources:     []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"},
			ResourceNames: []string{configuration, configuration + "-pods"}, Verbs: []string{"list", "watch", "patch"},
		}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: clusterMeta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: configuration}},
	} {
		require.NoError(t, c.Create(t.Context(), object))
	}
	i.applyConfigurations(t)
	return i
}

// manifest has no caBundle, as those that ship. The webhooks match a resource that no one has.
const manifest = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: NAME}
webhooks:
- &webhook
  name: deployments.warmpool.sh
  clientConfig: {service: {namespace: NAMESPACE, name: warmpool-webhook, path: /x}}
  rules: [{operations: [CREATE], apiGroups: [none.warmpool.sh], apiVersions: [v1], resources: [nones]}]
  sideEffects: None
  admissionReviewVersions: [v1]
- {<<: *webhook, name: others.warmpool.sh}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: NAME-pods}
webhooks:
- name: pods.warmpool.sh
  clientConfig: {service: {namespace: NAMESPACE, name: warmpool-webhook, path: /x}}
  rules: [{operations: [CREATE], apiGroups: [none.warmpool.sh], apiVersions: [v1], resources: [nones]}]
  sideEffects: None
  admissionReviewVersions: [v1]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NAME}
webhooks:
- name: deployments.warmpool.sh
  clientConfig: {service: {namespace: NAMESPACE, name: warmpool-webhook, path: /x}}
  rules: [{operations: [CREATE], apiGroups: [none.warmpool.sh], apiVersions: [v1], resources: [nones]}]
  sideEffects: None
  admissionReviewVersions: [v1]
`

// applyConfigurations is what `kubectl apply --server-side` does; without force.
func (i *install) applyConfigurations(t *testing.T) {
	t.Helper()
	filled := strings.NewReplacer("NAMESPACE", i.Namespace, "NAME", i.MutatingConfiguration).Replace(manifest)
	for document := range strings.SplitSeq(filled, "---\n") {
		object := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(document), &object.Object))
		require.NoError(t, i.admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl")))
	}
}

func (i *install) configurations(ctx context.Context) ([]client.Object, error) {
	objects := []client.Object{&admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.MutatingWebhookConfiguration{}}
	for n, name := range []string{i.MutatingConfiguration, i.ValidatingConfiguration, i.PodsConfiguration} {
		if err := i.admin.Get(ctx, client.ObjectKey{Name: name}, objects[n]); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// bundle returns the caBundle that all webhooks hold, or an error when they differ.
func (i *install) bundle(ctx context.Context) ([]byte, error) {
	objects, err := i.configurations(ctx)
	if err != nil {
		return nil, err
	}
	var webhooks []admissionv1.WebhookClientConfig
	for _, object := range objects {
		webhooks = append(webhooks, clientConfigs(object)...)
	}
	for _, webhook := range webhooks {
		if !bytes.Equal(webhook.CABundle, webhooks[0].CABundle) {
			return nil, fmt.Errorf("the webhooks hold different bundles")
		}
	}
	return webhooks[0].CABundle, nil
}

// ca returns ca.crt of the Secret.
func (i *install) ca(ctx context.Context, t assert.TestingT) []byte {
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: i.Namespace, Name: "warmpool-ca"}
	assert.NoError(t, i.admin.Get(ctx, key, &secret))
	return secret.Data["ca.crt"]
}

// waitForBundle waits until all webhooks hold the CA of the Secret and the earlier
// ones, in the order of bundles, and returns that CA. It need not be the first: those
// of one second are in the order of their bytes.
func (i *install) waitForBundle(t *testing.T, earlier ...[]byte) []byte {
	t.Helper()
	ctx := t.Context()
	var ca []byte
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		ca = i.ca(ctx, t)
		bundle, err := i.bundle(ctx)
		require.NoError(t, err)
		require.NotEmpty(t, ca)
		all := parseCertificates(bytes.Join(append([][]byte{ca}, earlier...), nil))
		slices.SortFunc(all, newestFirst)
		require.Equal(t, string(encodeCertificates(all)), string(bundle))
	}, soon, 50*time.Millisecond)
	return ca
}

// dial makes the handshake that an API server with this caBundle makes, and
// returns the serving certificate.
func (i *install) dial(address string, bundle []byte) (*x509.Certificate, error) {
	return dial(address, "warmpool-webhook."+i.Namespace+".svc", bundle)
}

func dial(address, serverName string, bundle []byte) (*x509.Certificate, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	conn, err := tls.DialWithDialer(dialer, "tcp", address, &tls.Config{RootCAs: roots, ServerName: serverName})
	if err != nil {
		return nil, err
	}
	return conn.ConnectionState().PeerCertificates[0], conn.Close()
}

// countErrors returns how many lines of the level error the replicas that are
// started from now on have logged, and the last one.
func (i *install) countErrors() func() (int, string) {
	var mu sync.Mutex
	var count int
	var last string
	i.log = funcr.New(func(_, line string) {
		if strings.Contains(line, `"level"=`) || strings.Contains(line, "lease lock") {
			return // only lines of the level error have no level; not every replica here may lead
		}
		mu.Lock()
		defer mu.Unlock()
		count, last = count+1, line
	}, funcr.Options{})
	return func() (int, string) {
		mu.Lock()
		defer mu.Unlock()
		return count, last
	}
}

// start runs one replica until the test ends, and returns the address and
// readiness of its webhook server. It may create no Lease, so it never leads.
func (i *install) start(t *testing.T, change ...func(*Certs)) (string, func() error) {
	t.Helper()
	certs, err := New(i.Options)
	require.NoError(t, err)
	for _, f := range change {
		f(certs)
	}
	address := freeAddress(t)
	options := webhook.Options{Host: "127.0.0.1", Port: port(t, address)}
	certs.Configure(&options)
	mgr, err := ctrl.NewManager(i.user, ctrl.Options{
		Scheme:                  clientgoscheme.Scheme,
		Logger:                  i.log,
		Metrics:                 server.Options{BindAddress: "0"},
		WebhookServer:           webhook.NewServer(options),
		Controller:              config.Controller{SkipNameValidation: new(true)},
		LeaderElection:          true,
		LeaderElectionID:        "warmpool",
		LeaderElectionNamespace: i.Namespace,
	})
	require.NoError(t, err)
	require.NoError(t, certs.SetupWithManager(mgr))
	started := mgr.GetWebhookServer().StartedChecker()

	done := make(chan error, 1)
	go func() { done <- mgr.Start(t.Context()) }() // which ends before the cleanup
	t.Cleanup(func() { assert.NoError(t, <-done) })
	return address, func() error { return errors.Join(started(nil), certs.Ready(&http.Request{})) }
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

func port(t *testing.T, address string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	require.NoError(t, err)
	number, err := strconv.Atoi(text)
	require.NoError(t, err)
	return number
}
