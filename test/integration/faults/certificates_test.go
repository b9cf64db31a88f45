package faults_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"warmpool.sh/test/harness/await"
	"warmpool.sh/test/harness/install"
)

// served is the certificate that a replica serves.
func served(w *install.Warmpool) (*x509.Certificate, error) {
	connection, err := tls.Dial("tcp", "127.0.0.1:"+strconv.Itoa(w.WebhookPort), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return nil, err
	}
	return connection.ConnectionState().PeerCertificates[0], connection.Close()
}

// allServe waits until every replica serves a certificate that is good.
func (c *cluster) allServe(t *testing.T, good func(*x509.Certificate) error) {
	t.Helper()
	for _, w := range c.replicas {
		await.NoError(t, limit, "the certificate is served", func() error {
			certificate, err := served(w)
			if err != nil {
				return err
			}
			return good(certificate)
		})
	}
}

// bundle is caBundle, where all webhooks have the same.
func (c *cluster) bundle(ctx context.Context) ([]byte, error) {
	mutating, validating, err := c.configurations(ctx)
	if err != nil {
		return nil, err
	}
	first := validating.Webhooks[0].ClientConfig.CABundle
	for _, configuration := range mutating {
		for _, w := range configuration.Webhooks {
			if !bytes.Equal(w.ClientConfig.CABundle, first) {
				return nil, errors.New("the webhooks have different bundles")
			}
		}
	}
	for _, w := range validating.Webhooks {
		if !bytes.Equal(w.ClientConfig.CABundle, first) {
			return nil, errors.New("the webhooks have different bundles")
		}
	}
	return first, nil
}

func changeCA(t *testing.T, c *cluster, l *load) string {
	before, err := c.bundle(t.Context())
	require.NoError(t, err)
	old, err := cert.ParseCertsPEM(before)
	require.NoError(t, err)
	require.Len(t, old, 1)
	l.mark()
	began := time.Now()
	require.NoError(t, c.admin.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: install.Namespace, Name: "warmpool-ca"}}))
	var now []*x509.Certificate
	await.NoError(t, limit, "both CAs are trusted", func() error {
		bundle, err := c.bundle(t.Context())
		if err != nil {
			return err
		}
		if now, err = cert.ParseCertsPEM(bundle); err != nil {
			return err
		}
		if len(now) != 2 || !now[1].Equal(old[0]) {
			return fmt.Errorf("%d CAs", len(now))
		}
		return nil
	})
	c.allServe(t, func(certificate *x509.Certificate) error { return certificate.CheckSignatureFrom(now[0]) })
	after := time.Since(began)
	// The API server has not looked at the new certificates before it connects anew.
	l.mark()
	c.roll(t, c.service.serving(t))
	return fmt.Sprintf("certificates of the new CA are served after %.0f s", after.Seconds())
}

func wipeBundle(t *testing.T, c *cluster, l *load) string {
	times := repetitions(1, 2, 10)
	for range times {
		l.mark()
		c.setBundle(t, nil)
		await.NoError(t, limit, "caBundle is back", func() error {
			bundle, err := c.bundle(t.Context())
			if err == nil && len(bundle) == 0 {
				return errors.New("it is empty")
			}
			return err
		})
		l.steady(t)
	}
	return fmt.Sprintf("%d times", times)
}

// files are certificates in a folder, laid out as the kubelet lays out a Secret.
type files struct {
	dir     string
	version int
	pem     []byte // certificate and CA
}

// useFiles has the replicas serve files, in place of those that ran before.
func (c *cluster) useFiles(t *testing.T) *files {
	t.Helper()
	f := &files{dir: t.TempDir()}
	for _, name := range []string{"tls.crt", "tls.key"} {
		require.NoError(t, os.Symlink(filepath.Join("..data", name), filepath.Join(f.dir, name)))
	}
	certificate, key := newPair(t)
	f.put(t, certificate, key)
	for len(c.replicas) > 0 {
		w := c.replicas[0]
		require.NoError(t, w.Stop())
		c.forget(w)
	}
	c.setBundle(t, certificate)
	c.args = append(c.args, "--certs=files", "--cert-dir="+f.dir)
	for range 2 {
		c.start(t)
	}
	return f
}

// newPair has a CA of its own, which follows the certificate.
func newPair(t *testing.T) (certificate, key []byte) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey(install.Service+"."+install.Namespace+".svc", nil, nil)
	require.NoError(t, err)
	return certificate, key
}

func (f *files) data(version int) string { return "..v" + strconv.Itoa(version) }

// put replaces both files at once.
func (f *files) put(t *testing.T, certificate, key []byte) {
	t.Helper()
	f.version++
	f.pem = certificate
	dir := filepath.Join(f.dir, f.data(f.version))
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
	f.link(t)
}

func (f *files) link(t *testing.T) {
	t.Helper()
	next := filepath.Join(f.dir, "..next")
	require.NoError(t, os.Symlink(f.data(f.version), next))
	require.NoError(t, os.Rename(next, filepath.Join(f.dir, "..data")))
}

func (f *files) faults(long bool) []fault {
	away := 10 * time.Second
	if long {
		away = 30 * time.Second
	}
	return []fault{
		{name: "Certificate files are replaced, by another CA's", long: true, cause: f.replace},
		{name: fmt.Sprintf("Certificate files are gone for %.0f s", away.Seconds()), cause: func(t *testing.T, c *cluster, l *load) string { return f.vanish(t, c, l, away) }},
	}
}

// replace does it in the order that loses nothing: both CAs are trusted before the new certificate is served.
func (f *files) replace(t *testing.T, c *cluster, l *load) string {
	certificate, key := newPair(t)
	both := append(bytes.Clone(f.pem), certificate...)
	want, err := cert.ParseCertsPEM(certificate)
	require.NoError(t, err)
	before := c.service.connections()
	l.mark()
	c.setBundle(t, both)
	l.steady(t)
	began := time.Now()
	f.put(t, certificate, key)
	c.allServe(t, func(have *x509.Certificate) error {
		if !have.Equal(want[0]) {
			return errors.New("the one before is served")
		}
		return nil
	})
	after := time.Since(began)
	l.mark()
	c.setBundle(t, certificate) // with another bundle the API server connects anew
	l.steady(t)
	assert.GreaterOrEqual(t, c.service.connections(), before+2)
	return fmt.Sprintf("served after %.0f s", after.Seconds())
}

// vanish has the API server connect anew all the time: a bundle with one more empty line is another.
func (f *files) vanish(t *testing.T, c *cluster, l *load, away time.Duration) string {
	before := c.service.connections()
	l.mark()
	require.NoError(t, os.Remove(filepath.Join(f.dir, "..data")))
	bundle := bytes.Clone(f.pem)
	for until := time.Now().Add(away); time.Now().Before(until); {
		bundle = append(bundle, '\n')
		c.setBundle(t, bundle)
		l.steady(t)
	}
	f.link(t)
	made := c.service.connections() - before
	assert.Greater(t, made, 1)
	return fmt.Sprintf("%d new connections meanwhile", made)
}
