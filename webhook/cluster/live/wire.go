package live

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// maxPage is the size of a page of a list that is decoded, maxObject that of one with a single object: the API server
	// takes no object that is larger.
	maxPage   = 2 << 20
	maxObject = 4 << 20
	// maxFrame is client-go's bound for an event of a watch.
	maxFrame = 16 << 20
)

// Transport bounds what is decoded of an API server's answers: a megabyte may become fifty in memory, and a list holds
// hundreds of objects. Objects of watches that are too large are replaced by their names before they are decoded, and pages
// of lists that are too large by an error, for which InPages asks for fewer objects.
func Transport(to http.RoundTripper) http.RoundTripper { return &transport{to} }

type transport struct{ http.RoundTripper }

// WrappedRoundTripper is for client-go, which looks for the transport behind others.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

// RoundTrip is http.RoundTripper's.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(request)
	if err != nil || request.Method != http.MethodGet || response.StatusCode != http.StatusOK {
		return response, err
	}
	switch query := request.URL.Query(); {
	case query.Get("watch") == "true" || query.Get("watch") == "1":
		response.Body = newFrames(response)
	case query.Has("limit"):
		limit := int64(maxPage)
		if query.Get("limit") == "1" {
			limit = maxObject
		}
		return response, boundPage(response, limit)
	}
	return response, nil
}

func boundPage(response *http.Response, limit int64) error {
	body := response.Body
	page, err := io.ReadAll(io.LimitReader(body, limit+1))
	if closing := body.Close(); err != nil {
		return errors.Join(err, closing)
	}
	if int64(len(page)) > limit {
		page, err = json.Marshal(&metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Code: http.StatusRequestEntityTooLarge, Reason: metav1.StatusReasonRequestEntityTooLarge,
			Message: fmt.Sprintf("the page is larger than the %d KiB that warmpool reads at once", limit>>10),
		})
		response.StatusCode, response.Status = http.StatusRequestEntityTooLarge, "413 Request Entity Too Large"
		response.Header.Set("Content-Type", runtime.ContentTypeJSON)
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(page)), int64(len(page))
	return err
}

// frames reads the events of a watch one by one.
type frames struct {
	io.Closer
	next func() ([]byte, error)
	rest []byte
}

func newFrames(response *http.Response) io.ReadCloser {
	body := response.Body
	switch kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); {
	case strings.HasPrefix(kind, runtime.ContentTypeProtobuf):
		return &frames{Closer: body, next: func() ([]byte, error) { return protobufFrame(body) }}
	case kind == runtime.ContentTypeJSON:
		decoder := json.NewDecoder(body)
		return &frames{Closer: body, next: func() ([]byte, error) { return jsonFrame(decoder) }}
	default:
		return body
	}
}

// Read is io.Reader's.
func (f *frames) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		var err error
		if f.rest, err = f.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// protobufFrame reads an event with its length before it.
func protobufFrame(from io.Reader) ([]byte, error) {
	frame := make([]byte, 4)
	if _, err := io.ReadFull(from, frame); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(frame)
	if length > maxFrame {
		return nil, fmt.Errorf("an event of a watch has %d bytes", length)
	}
	frame = slices.Grow(frame, int(length))[:4+length]
	event := frame[4:]
	if _, err := io.ReadFull(from, event); err != nil {
		return nil, err
	}
	if length <= maxSent {
		return frame, nil
	}
	kept, err := leastOfProtobuf(event)
	if err != nil {
		return nil, err
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(kept))), kept...), nil //nolint:gosec // it is shorter than before
}

// jsonFrame reads an event that ends where its JSON does.
func jsonFrame(from *json.Decoder) ([]byte, error) {
	var event json.RawMessage
	if err := from.Decode(&event); err != nil {
		return nil, err
	}
	if len(event) > maxSent {
		var err error
		if event, err = leastOfJSON(event); err != nil {
			return nil, err
		}
	}
	return append(event, '\n'), nil
}
