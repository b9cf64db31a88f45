package certs

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// week is an authority that nobody has to trust first; its certificates live as
// long as those of the real one.
type week struct {
	key *ecdsa.PrivateKey
	ca  x509.Certificate
}

func (week) Run(ctx context.Context) error        { <-ctx.Done(); return ctx.Err() }
func (week) WatchRotation(chan<- struct{})        {}
func (week) StopWatchingRotation(chan<- struct{}) {}
func (w week) Sign(template *x509.Certificate) (*x509.Certificate, error) {
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now(), time.Now().Add(7*day)
	der, err := x509.CreateCertificate(rand.Reader, template, &w.ca, template.PublicKey, w.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// Each certificate is renewed at two thirds of its life, twice in a row.
func TestRenewalInTime(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		e := newEmbedded(Options{Namespace: "warmpool-system"})
		e.source.Authority = week{key: key}
		done := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- e.Start(ctx) }()
		synctest.Wait()

		serving := func() *x509.Certificate {
			served, err := e.GetCertificate(nil)
			require.NoError(t, err)
			return served.Leaf
		}
		for range 2 {
			first := serving()
			<-time.After(time.Until(first.NotBefore.Add(7*day*2/3 + settle - time.Second)))
			synctest.Wait()
			assert.True(t, first.Equal(serving()), "renewed too early")
			<-time.After(2 * time.Second)
			synctest.Wait()
			assert.False(t, first.Equal(serving()), "not renewed at two thirds of its life")
		}
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
}
