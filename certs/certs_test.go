package certs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cert-manager/cert-manager/pkg/server/tls/authority"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

func patchJSON(t *testing.T, operations any) string {
	t.Helper()
	data, err := json.Marshal(operations)
	require.NoError(t, err)
	return string(data)
}

func TestNewChecksOptions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		opts Options
		want string
	}{
		{Options{}, "set Namespace"},
		{Options{Mode: ModeFiles}, "set Dir"},
		{Options{Mode: ModeCertManager}, "set Dir"},
		{Options{Mode: "vault", Dir: "x"}, `unknown certificate mode "vault"`},
	} {
		_, err := New(test.opts)
		assert.ErrorContains(t, err, test.want)
	}
}

func TestEmbeddedNames(t *testing.T) {
	t.Parallel()
	c, err := New(Options{Namespace: "warmpool-system"})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"warmpool-webhook",
		"warmpool-webhook.warmpool-system",
		"warmpool-webhook.warmpool-system.svc",
		"warmpool-webhook.warmpool-system.svc.cluster.local",
	}, c.embedded.source.DNSNames)
	assert.False(t, c.embedded.NeedLeaderElection(), "every replica serves")

	var server webhook.Options
	c.Configure(&server)
	require.Len(t, server.TLSOpts, 1)
	var config tls.Config
	server.TLSOpts[0](&config)
	_, err = config.GetCertificate(nil)
	assert.ErrorContains(t, err, "waits for a CA")
}

func TestSignWaitsForTrust(t *testing.T) {
	t.Parallel()
	var trusted atomic.Pointer[x509.Certificate]
	a := trustedAuthority{DynamicAuthority: &authority.DynamicAuthority{}, trusted: &trusted}
	_, err := a.Sign(&x509.Certificate{})
	assert.ErrorIs(t, err, authority.ErrCertificateNotAvailable)
}

func TestHandover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		issue := func(life time.Duration) *tls.Certificate {
			return &tls.Certificate{Leaf: &x509.Certificate{NotBefore: time.Now(), NotAfter: time.Now().Add(life)}}
		}
		var newest *tls.Certificate
		none := errors.New("none")
		h := handover{newest: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if newest == nil {
				return nil, none
			}
			return newest, nil
		}}
		serving := func() *tls.Certificate {
			got, err := h.GetCertificate(nil)
			require.NoError(t, err)
			return got
		}

		_, err := h.GetCertificate(nil)
		require.ErrorIs(t, err, none)

		first := issue(time.Hour)
		newest = first
		assert.Same(t, first, serving(), "the first one is served at once")

		<-time.After(30 * time.Minute)
		second := issue(time.Minute)
		newest = second
		assert.Same(t, first, serving(), "a renewed one waits")
		<-time.After(settle - time.Nanosecond)
		assert.Same(t, first, serving())
		<-time.After(time.Nanosecond)
		assert.Same(t, second, serving(), "and takes over when it has settled")

		<-time.After(time.Minute)
		third := issue(time.Hour)
		newest = third
		assert.Same(t, third, serving(), "an expired one is not served while another is there")
	})
}

func TestConflictIsNoError(t *testing.T) {
	t.Parallel()
	var lines []string
	log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{Verbosity: 1})
	log = log.WithSink(conflictAtDebug{log.GetSink()})
	log.Error(errors.New("broken"), "a")
	log.Error(apierrors.NewConflict(schema.GroupResource{}, "warmpool-ca", errors.New("late")), "b")
	require.Len(t, lines, 2)
	assert.NotContains(t, lines[0], `"level"`, "an error")
	assert.Contains(t, lines[1], `"level"=1 "msg"="b"`)
}
