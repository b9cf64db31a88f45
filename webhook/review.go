package webhook

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	// The mirror of encoding/json/v2, which is in the standard library from Go 1.27 on: as strict about case as the API
	// machinery's decoder, and about twice as fast.
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"warmpool.sh/webhook/quantity"
)

// maxReviewBytes bounds a request's body: an object of the API server's limit (3 MiB) twice, old and new, and its envelope.
const maxReviewBytes = 7 << 20

// review is an AdmissionReview whose objects are decoded in the same pass as the envelope. What it leaves out is not read.
type review[T any] struct {
	metav1.TypeMeta `json:",inline"`
	Request         *request[T] `json:"request"`
}

// request is the part of an AdmissionRequest that warmpool goes by.
type request[T any] struct {
	UID         types.UID               `json:"uid"`
	Kind        metav1.GroupVersionKind `json:"kind"`
	SubResource string                  `json:"subResource"`
	Name        string                  `json:"name"`
	Namespace   string                  `json:"namespace"`
	Operation   admissionv1.Operation   `json:"operation"`
	Object      *T                      `json:"object"`
	OldObject   *T                      `json:"oldObject"`
	DryRun      bool                    `json:"dryRun"`
	UserInfo    struct {
		Username string `json:"username"`
	} `json:"userInfo"`
}

// httpError is a request that is no admission review; the API server then goes by the failure policy.
type httpError struct {
	code    int
	message string
}

func (e *httpError) Error() string { return e.message }

func badRequest(format string, args ...any) error {
	return &httpError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// readReview reads and decodes the body, for which the share is made large enough. The error is an *httpError with a 4xx
// code; with a *tooManyValues comes a request that has everything but its objects.
func readReview[T any](w http.ResponseWriter, r *http.Request, s *share) (*request[T], error) {
	if r.Method != http.MethodPost {
		return nil, &httpError{http.StatusMethodNotAllowed, "send an AdmissionReview by POST"}
	}
	if !isJSON(r.Header.Get("Content-Type")) {
		return nil, &httpError{http.StatusUnsupportedMediaType, "Content-Type must be application/json"}
	}
	body, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	err = s.decoding(body)
	if tooMany := (*tooManyValues)(nil); errors.As(err, &tooMany) {
		envelope, malformed := decodeReview[struct{}](body, jsontext.AllowDuplicateNames(true)) // to find them it would keep every name
		if malformed != nil {
			return nil, malformed
		}
		return &request[T]{UID: envelope.UID, Kind: envelope.Kind, SubResource: envelope.SubResource, Name: envelope.Name, DryRun: envelope.DryRun}, err
	}
	if err != nil {
		return nil, err
	}
	return decodeReview[T](body)
}

func decodeReview[T any](body []byte, options ...json.Options) (*request[T], error) {
	var in review[T]
	if quantity.Suspect(body) {
		options = append(options, json.WithUnmarshalers(quantity.Unmarshalers))
	}
	if err := json.Unmarshal(body, &in, options...); err != nil {
		return nil, badRequest("not an AdmissionReview: %.300v", err)
	}
	if in.APIVersion != "admission.k8s.io/v1" || in.Kind != "AdmissionReview" {
		return nil, badRequest("apiVersion and kind must be admission.k8s.io/v1 AdmissionReview, got %.100q %.100q", in.APIVersion, in.Kind)
	}
	if in.Request == nil || in.Request.UID == "" {
		return nil, badRequest("the AdmissionReview has no request, or its request no uid")
	}
	return in.Request, nil
}

func isJSON(contentType string) bool {
	const want = "application/json" // nearly always written so
	if contentType == want {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == want
}

// readBody reads as many bytes as the request announces, which the server holds it to, or up to the bound.
func readBody(w http.ResponseWriter, r *http.Request) (body []byte, err error) {
	if r.ContentLength < 0 {
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxReviewBytes))
	} else if r.ContentLength <= maxReviewBytes {
		body = make([]byte, r.ContentLength)
		_, err = io.ReadFull(r.Body, body)
	}
	var tooLarge *http.MaxBytesError
	switch {
	case r.ContentLength > maxReviewBytes, errors.As(err, &tooLarge):
		return nil, &httpError{http.StatusRequestEntityTooLarge, fmt.Sprintf("the AdmissionReview is larger than %d bytes", maxReviewBytes)}
	case err != nil:
		return nil, badRequest("read the AdmissionReview: %v", err)
	}
	return body, nil
}

// answer writes the AdmissionReview of a response.
func answer(w io.Writer, response *admissionv1.AdmissionResponse) error {
	if response.Allowed && response.Result == nil && len(response.Patch)+len(response.Warnings)+len(response.AuditAnnotations) == 0 {
		return answerAllowed(w, response.UID)
	}
	return json.MarshalWrite(w, admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Response: response,
	})
}

// answerAllowed writes what nearly all answers are when nothing is to change, for less than reflection takes.
func answerAllowed(w io.Writer, uid types.UID) error {
	text, err := jsontext.AppendQuote([]byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":`), uid)
	if err == nil {
		_, err = w.Write(append(text, `,"allowed":true}}`...))
	}
	return err
}
