// Package redact makes errors fit for logs: those of the API server quote objects, and whoever reads the log may not read
// these.
package redact

import (
	"errors"
	"fmt"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// redacted says less than the error that it stands for.
type redacted struct {
	text string
	of   error
}

// Error is error's.
func (r *redacted) Error() string { return r.text }

// Unwrap is for errors.Is and errors.As.
func (r *redacted) Unwrap() error { return r.of }

// Error is err with a text that quotes nothing of an object or a request; nil stays nil. Of what the API server says, the
// code and the reason are left.
func Error(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, err := range joined.Unwrap() {
			all = append(all, Error(err))
		}
		return errors.Join(all...)
	}
	status, request := apierrors.APIStatus(nil), (*url.Error)(nil)
	switch {
	case errors.As(err, &status):
		s := status.Status()
		return &redacted{fmt.Sprintf("the API server says %d %s", s.Code, s.Reason), err}
	case errors.As(err, &request):
		return &redacted{fmt.Sprintf("the API server does not answer: %v", request.Err), err}
	default:
		return err
	}
}
