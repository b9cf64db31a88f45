package certs

import (
	"crypto/tls"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	}, c.embedded.names)

	var server webhook.Options
	c.Configure(&server)
	require.Len(t, server.TLSOpts, 1)
	var config tls.Config
	server.TLSOpts[0](&config)
	_, err = config.GetCertificate(nil)
	assert.ErrorContains(t, err, "waits for a CA")
}
