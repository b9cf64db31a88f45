// Package bench measures warmpool against baselines in the same run. Nothing here asserts a time.
package bench

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"warmpool.sh/test/bench/baseline"
	"warmpool.sh/webhook"
	"warmpool.sh/webhook/policy"
)

// The framework would say in the midst of a row that it has no logger.
func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// BenchmarkHandlers serves one request by each handler: a whole HTTP handler on a review as an API server sends it.
// The row "ratios" runs them in turn and counts the process's CPU time, garbage collection included, so that a busy
// machine disturbs little and all alike. It reports
//
//	x-noop        time of warmpool over that of a handler that decodes the review and allows
//	framework-x   time of admission.WithDefaulter (WithValidator) doing the same work, over warmpool's
//	allocs-part   allocations of warmpool over those of the framework
func BenchmarkHandlers(b *testing.B) {
	e := evaluator(b)
	handlers := webhook.Handlers(func() *policy.Evaluator { return e }, "", logr.Discard())
	cases := []struct {
		name      string
		body      []byte
		warmpool  http.Handler
		framework http.Handler
	}{
		{"pods", review(b, "pod.json"), handlers[webhook.PodsPath], baseline.Framework(e)},
		{"placeholders", review(b, "placeholder.json"), handlers[webhook.MutatePlaceholdersPath], framework(&placeholderDefaulter{e})},
		{"placeholders-noop", review(b, "shipped.json"), handlers[webhook.MutatePlaceholdersPath], framework(&placeholderDefaulter{e})},
		{"validate", review(b, "shipped.json"), handlers[webhook.ValidatePlaceholdersPath], admission.WithValidator(clientgoscheme.Scheme, &placeholderValidator{e})},
	}
	for _, c := range cases {
		rows := []row{{"noop", baseline.Constant(nil)}, {"warmpool", c.warmpool}, {"framework", c.framework}}
		for _, r := range rows {
			b.Run(c.name+"/"+r.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					serve(b, r.handler, c.body)
				}
			})
		}
		b.Run(c.name+"/ratios", func(b *testing.B) { ratios(b, rows, c.body) })
	}
}

type row struct {
	name    string
	handler http.Handler
}

// serve calls the handler with as little of its own as possible: what it measures is the handler.
func serve(b *testing.B, handler http.Handler, body []byte) {
	response := sink{header: http.Header{}}
	handler.ServeHTTP(&response, &http.Request{
		Method: http.MethodPost, URL: target, Header: header,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	})
	if response.code != 0 && response.code != http.StatusOK {
		b.Fatal(response.code)
	}
}

var (
	target = &url.URL{Path: "/"}
	header = http.Header{"Content-Type": {"application/json"}}
)

// sink is a ResponseWriter that keeps nothing but the status code.
type sink struct {
	header http.Header
	code   int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(code int)        { s.code = code }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }

// ratios adds up the CPU time of each handler over many short rounds in which all of them take turns.
func ratios(b *testing.B, rows []row, body []byte) {
	const perRound = 20
	times := make([]float64, len(rows))
	allocs := make([]float64, len(rows))
	for round := 0; b.Loop(); round++ {
		for i := range rows {
			i = (i + round) % len(rows) // no one is always the first
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := cpuTime(b)
			for range perRound {
				serve(b, rows[i].handler, body)
			}
			times[i] += float64(cpuTime(b) - began)
			runtime.ReadMemStats(&after)
			allocs[i] += float64(after.Mallocs - before.Mallocs)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(times[1]/times[0], "x-noop")
	b.ReportMetric(times[2]/times[1], "framework-x")
	b.ReportMetric(allocs[1]/allocs[2], "allocs-part")
}

func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// The framework's way: a defaulter on the typed object; deep copy, marshal and diff are its own.
type placeholderDefaulter struct{ *policy.Evaluator }

func (d *placeholderDefaulter) Default(ctx context.Context, deployment *appsv1.Deployment) error {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return err
	}
	o := d.Placeholder(deployment, request.Namespace)
	d.Mutate(o)
	*deployment = *o.Deployment
	return nil
}

type placeholderValidator struct{ *policy.Evaluator }

func (v *placeholderValidator) ValidateCreate(ctx context.Context, deployment *appsv1.Deployment) (admission.Warnings, error) {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return nil, err
	}
	return webhook.Warnings(v.Check(v.Placeholder(deployment, request.Namespace))), nil
}

func (v *placeholderValidator) ValidateUpdate(ctx context.Context, _, deployment *appsv1.Deployment) (admission.Warnings, error) {
	return v.ValidateCreate(ctx, deployment)
}

func (v *placeholderValidator) ValidateDelete(context.Context, *appsv1.Deployment) (admission.Warnings, error) {
	return nil, nil
}

func framework[T kruntime.Object](defaulter admission.Defaulter[T]) http.Handler {
	return admission.WithDefaulter(clientgoscheme.Scheme, defaulter)
}

// root is the repository's folder.
var root = filepath.Join("..", "..")

func evaluator(b *testing.B) *policy.Evaluator {
	b.Helper()
	e, err := baseline.Evaluator(root, filepath.Join(baseline.Examples(root), "warmpool.yaml"))
	require.NoError(b, err)
	return e
}

func review(b *testing.B, file string) []byte {
	b.Helper()
	body, err := baseline.Review(root, file)
	require.NoError(b, err)
	return body
}
