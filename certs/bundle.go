package certs

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"
)

// maxBundle is the number of CAs in a caBundle: the present one and the one before it.
const maxBundle = 2

// trustedCAs returns the CAs that caBundle shall hold, newest first: ca, and the
// newest of the earlier ones of ours in present (PEM, what the configurations
// hold now) that are still valid. Replicas may still serve their certificates.
// All else in present is dropped.
func trustedCAs(ca *x509.Certificate, present []byte, now time.Time) []*x509.Certificate {
	var earlier []*x509.Certificate
	for _, cert := range parseCertificates(present) {
		// Each of our CAs has the same subject and signs itself.
		ours := cert.IsCA && bytes.Equal(cert.RawSubject, ca.RawSubject) && cert.CheckSignatureFrom(cert) == nil
		if ours && !cert.Equal(ca) && !now.After(cert.NotAfter) {
			earlier = append(earlier, cert)
		}
	}
	slices.SortFunc(earlier, newestFirst)
	earlier = slices.CompactFunc(earlier, (*x509.Certificate).Equal)
	all := append([]*x509.Certificate{ca}, earlier[:min(len(earlier), maxBundle-1)]...)
	// Sorted, so that a replica that does not know the newest CA yet computes the
	// same bundle as the others and has nothing to write.
	slices.SortFunc(all, newestFirst)
	return all
}

func newestFirst(a, b *x509.Certificate) int {
	return cmp.Or(b.NotBefore.Compare(a.NotBefore), bytes.Compare(a.Raw, b.Raw))
}

// parseCertificates returns the certificates in PEM data and skips what is none.
func parseCertificates(data []byte) []*x509.Certificate {
	var certs []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			certs = append(certs, cert)
		}
	}
	return certs
}

func encodeCertificates(certs []*x509.Certificate) []byte {
	var out []byte
	for _, cert := range certs {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})...)
	}
	return out
}
