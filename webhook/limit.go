package webhook

import (
	"bytes"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// maxBytesInWork bounds the bodies that are in work at once: eight of the largest, which with what they are decoded to
	// leave the container's memory room. Of ordinary reviews, of some KiB, it is several hundred.
	maxBytesInWork = 8 * maxReviewBytes
	// minWeight, in bytes, is what the smallest review counts for: its buffers, stack and decoded object.
	minWeight = 64 << 10
	// objectWeight, in bytes, is what a JSON object of a body takes when it is decoded: a container's struct is the largest
	// that an object can repeat, and {} is enough for one.
	objectWeight = 1 << 10
	// bodyTimeout ends a request whose body does not come: it would keep its share of maxBytesInWork from others. API
	// servers send the body at once, and wait for an answer for less, by the timeoutSeconds that ship.
	bodyTimeout = 10 * time.Second
	// retryAfter, in seconds, is when the API server tries again, as often as the webhook's timeoutSeconds allows.
	retryAfter = "1"
)

// limiter bounds what all webhooks together have in work. It keeps no queue: the API server sends all reviews through one
// connection, where bodies that wait would be in the way of those in work, and it comes again by itself after a 429.
type limiter struct{ bytes *semaphore.Weighted }

func newLimiter() *limiter { return &limiter{semaphore.NewWeighted(maxBytesInWork)} }

// limited bounds a webhook's requests together with those of all others of the limiter.
func limited[T any](l *limiter, h *handler[T]) http.Handler {
	h.limiter = l
	return l.limit(h.name, h)
}

// decoding takes what a body will need beyond its length when it is decoded; release gives it back. Ordinary objects need
// no more. The error is an *httpError: 413 for what there is never room for, 429 for what there is no room for now.
func (l *limiter) decoding(body []byte) (release func(), err error) {
	objects := int64(bytes.Count(body, []byte{'{'}))
	extra := objects*objectWeight - max(int64(len(body)), minWeight)
	switch {
	case extra <= 0:
		return func() {}, nil
	case extra > maxBytesInWork/2:
		return nil, &httpError{http.StatusRequestEntityTooLarge, fmt.Sprintf("the AdmissionReview has %d JSON objects, more than warmpool's memory allows", objects)}
	case !l.bytes.TryAcquire(extra):
		return nil, &httpError{http.StatusTooManyRequests, "warmpool has as many admission reviews in work as its memory allows; try again in " + retryAfter + " s"}
	default:
		return func() { l.bytes.Release(extra) }, nil
	}
}

// limit gives next no request above the bound; those get a 429.
func (l *limiter) limit(name string, next http.Handler) http.Handler {
	refused := refusedTotal.WithLabelValues(name) // from the start 0, not absent
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		weight := weigh(r)
		if !l.bytes.TryAcquire(weight) {
			refused.Inc()
			w.Header().Set("Retry-After", retryAfter)
			http.Error(w, fmt.Sprintf("warmpool has %d MiB of admission reviews in work, as much as its memory allows; try again in %s s",
				maxBytesInWork>>20, retryAfter), http.StatusTooManyRequests)
			return
		}
		inFlight.Inc()
		defer func() {
			inFlight.Dec()
			l.bytes.Release(weight)
		}()
		// Not every writer can; those of the server do.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
		next.ServeHTTP(w, r)
	})
}

// weigh gives the bytes that a request's body may take; all of what is allowed where it does not say how many.
func weigh(r *http.Request) int64 {
	if r.ContentLength < 0 {
		return maxReviewBytes
	}
	return min(max(r.ContentLength, minWeight), maxReviewBytes)
}
