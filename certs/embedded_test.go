package certs

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inTime runs a test by a clock of its own, with a replica and what it serves.
func inTime(t *testing.T, test func(t *testing.T, e *embedded, trust func() *tls.Certificate, serving func() *x509.Certificate)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := newEmbedded(ours)
		trust := func() *tls.Certificate {
			ca, err := newCA("warmpool-ca", ourNames, time.Now())
			require.NoError(t, err)
			assert.True(t, e.trust(ca, time.Now()))
			assert.False(t, e.trust(ca, time.Now()), "again")
			return ca
		}
		test(t, e, trust, func() *x509.Certificate {
			served, err := e.GetCertificate(nil)
			require.NoError(t, err)
			return served.Leaf
		})
	})
}

// Each certificate is renewed at two thirds of its life, twice in a row.
func TestRenewalInTime(t *testing.T) {
	t.Parallel()
	inTime(t, func(t *testing.T, _ *embedded, trust func() *tls.Certificate, serving func() *x509.Certificate) {
		trust()
		for range 2 {
			first := serving()
			time.Sleep(leafLife*2/3 - time.Second)
			assert.True(t, first.Equal(serving()), "renewed too early")
			time.Sleep(2 * time.Second)
			assert.False(t, first.Equal(serving()), "not renewed at two thirds of its life")
		}
	})
}

// A certificate of another CA is served when API servers had time to learn of that CA, unless there is no other.
func TestAnotherCASettles(t *testing.T) {
	t.Parallel()
	inTime(t, func(t *testing.T, e *embedded, trust func() *tls.Certificate, serving func() *x509.Certificate) {
		_, err := e.GetCertificate(nil)
		require.ErrorContains(t, err, "waits for a CA")

		first := trust()
		before := serving()
		require.NoError(t, before.CheckSignatureFrom(first.Leaf), "the first one is served at once")
		time.Sleep(leafLife*2/3 + time.Second) // also when it is to be renewed anyway

		second := trust()
		assert.True(t, before.Equal(serving()))
		time.Sleep(settle - time.Nanosecond)
		assert.True(t, before.Equal(serving()))
		time.Sleep(time.Nanosecond)
		require.NoError(t, serving().CheckSignatureFrom(second.Leaf))

		time.Sleep(leafLife + time.Second)
		third := trust()
		require.NoError(t, serving().CheckSignatureFrom(third.Leaf), "an expired one is not served")
	})
}
