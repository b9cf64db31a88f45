package webhook

import (
	"bytes"
	"errors"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
)

// reply is a complete HTTP answer that still has to be written.
type reply struct {
	code int
	body []byte
}

// admissionReply is an AdmissionReview, whatever it says.
func admissionReply(response *admissionv1.AdmissionResponse) *reply {
	var body bytes.Buffer
	if err := answer(&body, response); err != nil {
		return failure("encode the answer: " + err.Error())
	}
	return &reply{http.StatusOK, body.Bytes()}
}

// refusal is the answer to what is no admission review, or for which there is no room.
func refusal(err error) *reply {
	code := http.StatusBadRequest
	if httpErr := (*httpError)(nil); errors.As(err, &httpErr) {
		code = httpErr.code
	}
	return &reply{code, []byte(err.Error())}
}

// failure is a fault of warmpool's own.
func failure(message string) *reply {
	return &reply{http.StatusInternalServerError, []byte(message)}
}

// write writes the answer. Whoever hangs up meanwhile does not need it.
func (a *reply) write(w http.ResponseWriter) {
	switch a.code {
	case http.StatusOK:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(a.body)
		return
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", retryAfter)
	}
	http.Error(w, string(a.body), a.code)
}
