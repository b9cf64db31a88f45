package webhook

import (
	"bytes"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// maxInWork bounds the weight of all requests in work at once, in bytes. With what weights leave out it keeps the process
	// below its memory limit of 256 MiB by a fifth; of ordinary reviews it is more than a hundred.
	maxInWork = 24 << 20
	// maxWeight is the weight from which nothing real is: a pod of 16,000 JSON objects, or of 30,000 other values.
	maxWeight = 16 << 20
	// largeWeight is the weight from which a review is worked on only while no other of such weight is.
	largeWeight = 1 << 20
	// minWeight is what the smallest review weighs: its buffers, stack and decoded object.
	minWeight = 64 << 10
	// objectWeight is what a JSON object of a body takes when it is decoded: a container's struct is the largest that an
	// object can repeat, and {} is enough for one.
	objectWeight = 1 << 10
	// valueWeight is what another value takes: an entry of a map, or an element of a list.
	valueWeight = 512
	// maxRequests bounds the requests that are not answered completely, whatever they weigh.
	maxRequests = 1024
	// bodyTimeout ends a request whose body does not come: it would keep its share from others. API servers send the body at
	// once, and wait for an answer for less, by the timeoutSeconds that ship.
	bodyTimeout = 10 * time.Second
	// answerTimeout ends a request whose caller does not read the answer.
	answerTimeout = 5 * time.Second
	// retryAfter, in seconds, is when the API server tries again, as often as the webhook's timeoutSeconds allows.
	retryAfter = "1"
)

// limiter bounds what all webhooks together have in work. It keeps no queue: the API server sends all reviews through one
// connection, where bodies that wait would be in the way of those in work, and it comes again by itself after a 429.
type limiter struct {
	weight   *semaphore.Weighted
	large    *semaphore.Weighted
	requests *semaphore.Weighted
}

func newLimiter() *limiter {
	return &limiter{semaphore.NewWeighted(maxInWork), semaphore.NewWeighted(1), semaphore.NewWeighted(maxRequests)}
}

// share is what one request holds of a limiter.
type share struct {
	*limiter
	weight int64
	large  bool
}

// grow makes the share large enough for a weight. Without room for it, ok is false.
func (s *share) grow(weight int64) (ok bool) {
	if weight > largeWeight && !s.large {
		if s.large = s.limiter.large.TryAcquire(1); !s.large {
			return false
		}
	}
	extra := weight - s.weight
	if extra <= 0 {
		return true
	}
	if ok = s.limiter.weight.TryAcquire(extra); ok {
		s.weight = weight
	}
	return ok
}

func (s *share) release() {
	s.limiter.weight.Release(s.weight)
	if s.large {
		s.limiter.large.Release(1)
	}
}

// tooManyValues is a review that is heavier than any real one.
type tooManyValues struct{ values int }

func (e *tooManyValues) Error() string {
	return fmt.Sprintf("the AdmissionReview has %d JSON values, more than any real one", e.values)
}

// decoding makes the share large enough for what the body takes when it is decoded. The error is a *tooManyValues for what
// there is never room for, or an *httpError, 429, for what there is no room for now.
func (s *share) decoding(body []byte) error {
	// Strings may hold these bytes too: it is at least as much as there is, and ordinary bodies need no closer look.
	objects, values := bytes.Count(body, []byte{'{'}), bytes.Count(body, []byte{','})
	if weightOf(body, objects, values) > largeWeight {
		objects, values = countValues(body)
	}
	weight := weightOf(body, objects, values)
	switch {
	case weight > maxWeight:
		return &tooManyValues{objects + values}
	case !s.grow(weight):
		return errBusy
	default:
		return nil
	}
}

func weightOf(body []byte, objects, values int) int64 {
	return max(int64(len(body))+int64(objects)*objectWeight+int64(values)*valueWeight, minWeight)
}

// countValues counts the objects and the commas of a JSON text, but for those within strings.
func countValues(body []byte) (objects, values int) {
	quoted := false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case quoted:
		case c == '{':
			objects++
		case c == ',':
			values++
		}
	}
	return objects, values
}

var errBusy = &httpError{http.StatusTooManyRequests,
	"warmpool has as many admission reviews in work as its memory allows; try again in " + retryAfter + " s"}

// work gives judge a share, and takes it back before the answer is written: a caller that does not read holds nothing of it.
func (l *limiter) work(w http.ResponseWriter, judge func(*share) *reply) {
	if !l.requests.TryAcquire(1) {
		panic(http.ErrAbortHandler) // even an answer could wait for its caller
	}
	defer l.requests.Release(1)
	control := http.NewResponseController(w)
	// Not every writer can; those of the server do.
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
	answer := l.judge(judge)
	_ = control.SetWriteDeadline(time.Now().Add(answerTimeout))
	answer.write(w)
}

func (l *limiter) judge(judge func(*share) *reply) *reply {
	s := &share{limiter: l}
	defer s.release()
	inFlight.Inc()
	defer inFlight.Dec()
	return judge(s)
}

// announced gives the bytes that a request's body may take; all of what is allowed where it does not say how many.
func announced(r *http.Request) int64 {
	if r.ContentLength < 0 {
		return maxReviewBytes
	}
	return min(max(r.ContentLength, minWeight), maxReviewBytes)
}
