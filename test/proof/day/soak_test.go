package day_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/test/harness/install"
	"warmpool.sh/test/harness/needs"
	"warmpool.sh/test/harness/simulation"
)

// soaked is what became of warmpool in many days, one after another.
type soaked struct {
	Minutes float64 `json:"minutes"`
	Starts  int     `json:"starts"`
	// Samples were taken of the process after the first fifth of the time.
	Samples []sample `json:"samples"`
	Errors  int      `json:"errors"`
}

type sample struct {
	Minute     float64 `json:"minute"`
	MiB        float64 `json:"mib"`
	Goroutines float64 `json:"goroutines"`
}

// most are the slopes that count as flat, for each 10 minutes.
const (
	mostMiB        = 1.0
	mostGoroutines = 2.0
)

// TestSoak runs days until the time is over.
func TestSoak(t *testing.T) {
	if *soak == 0 {
		needs.Skip(t, needs.Flag, "make proof SOAK=30m sets -soak")
	}
	of := length{time: 3 * time.Minute, count: 60, delays: simulation.DefaultDelays}
	r := newReplay(t, warmpool, of)
	began := time.Now()
	s := &soaked{}
	ctx, end := context.WithCancel(t.Context())
	sampled := make(chan []sample)
	go func() { sampled <- r.sample(ctx, t, began) }()
	now := firstDay.before
	for day := 0; time.Since(began) < *soak; day++ {
		next := images{before: now, after: map[string]string{}}
		for _, kind := range []string{"cpu", "gpu"} {
			next.after[kind] = fmt.Sprintf("public.ecr.aws/sagemaker/sagemaker-distribution:3.%d.0-%s", 3+day, kind)
		}
		require.NoError(t, r.run(t.Context(), trace(seed+uint64(day), fmt.Sprintf("day%d-", day), of.count, next), next))
		s.Starts += of.count
		now = next.after
	}
	end()
	s.Samples, s.Minutes, s.Errors = <-sampled, round(time.Since(began).Minutes()), len(r.errors(t))
	t.Logf("%.1f minutes, %d starts: %s", s.Minutes, s.Starts, s)
	assert.Empty(t, r.errors(t))
	mib, goroutines := s.slopes()
	assert.Less(t, mib, mostMiB, "MiB of resident memory for each 10 minutes")
	assert.Less(t, goroutines, mostGoroutines, "goroutines for each 10 minutes")
	p := readProof(t)
	p.Soak = s
	p.write(t)
	p.publish(t)
}

// sample looks at the process every 5 seconds, after a fifth of the time.
func (r *replay) sample(ctx context.Context, t *testing.T, began time.Time) (samples []sample) {
	for sleep(ctx, 5*time.Second) == nil {
		minute := time.Since(began)
		if minute < *soak/5 {
			continue
		}
		s := sample{Minute: round(minute.Minutes())}
		for line := range strings.Lines(r.metrics(t)) {
			var value float64
			if name, text, _ := strings.Cut(strings.TrimSpace(line), " "); name == "process_resident_memory_bytes" || name == "go_goroutines" {
				_, err := fmt.Sscan(text, &value)
				assert.NoError(t, err)
				if name == "go_goroutines" {
					s.Goroutines = value
				} else {
					s.MiB = round(value / (1 << 20))
				}
			}
		}
		samples = append(samples, s)
	}
	return samples
}

// slopes are those of the lines that fit the samples best, for each 10 minutes.
func (s *soaked) slopes() (mib, goroutines float64) {
	return s.slope(func(x sample) float64 { return x.MiB }), s.slope(func(x sample) float64 { return x.Goroutines })
}

func (s *soaked) slope(of func(sample) float64) float64 {
	var x, y, xx, xy float64
	for _, each := range s.Samples {
		x, y = x+each.Minute, y+of(each)
		xx, xy = xx+each.Minute*each.Minute, xy+each.Minute*of(each)
	}
	n := float64(len(s.Samples))
	return 10 * (n*xy - x*y) / (n*xx - x*x)
}

// String tells the range of the samples and their slopes.
func (s *soaked) String() string {
	low, high := s.Samples[0], s.Samples[0]
	for _, x := range s.Samples {
		low.MiB, high.MiB = min(low.MiB, x.MiB), max(high.MiB, x.MiB)
		low.Goroutines, high.Goroutines = min(low.Goroutines, x.Goroutines), max(high.Goroutines, x.Goroutines)
	}
	mib, goroutines := s.slopes()
	return fmt.Sprintf("resident memory %.1f to %.1f MiB (%+.2f MiB in 10 minutes), goroutines %.0f to %.0f (%+.2f), error lines in the log: %d",
		low.MiB, high.MiB, mib, low.Goroutines, high.Goroutines, goroutines, s.Errors)
}

// metrics are warmpool's.
func (r *replay) metrics(t require.TestingT) string {
	text, err := install.Metrics(context.Background(), r.Warmpool.MetricsURL)
	require.NoError(t, err)
	return text
}

// errors are the lines of warmpool's log that tell of one, from its installation on.
func (r *replay) errors(t *testing.T) (lines []string) {
	t.Helper()
	log, err := os.ReadFile(r.Warmpool.Log)
	require.NoError(t, err)
	for line := range strings.Lines(string(log)) {
		if strings.HasPrefix(line, "E") || strings.HasPrefix(line, "F") || strings.Contains(line, "panic") {
			lines = append(lines, line)
		}
	}
	return lines
}
