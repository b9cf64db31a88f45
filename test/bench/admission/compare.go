package main

import (
	"io"
	"math/rand/v2"
	"slices"

	"warmpool.sh/test/bench/result"
)

// resamples of the bootstrap.
const resamples = 1000

// samples are milliseconds by variant and round.
type samples [][]float64

// again draws as many rounds as there are, with replacement: variants of a round stay together, and so does what disturbed
// them all.
func (s samples) again(random *rand.Rand) samples {
	drawn := make(samples, len(s))
	for range s[0] {
		round := random.IntN(len(s[0]))
		for i := range s {
			drawn[i] = append(drawn[i], s[i][round])
		}
	}
	return drawn
}

// figures of one variant; the first four are those that stand in no relation to another.
type figures struct{ p50, p99, added, ratio, p99Ratio float64 }

// figures compares each variant's medians: what it adds to the first variant's, over what the variant reference adds; and
// its p99 over that of the no-op.
func (s samples) figures(reference, noop int) []figures {
	all := make([]figures, len(s))
	for i := range s {
		all[i].p50, all[i].p99 = result.Quantile(s[i], .5), result.Quantile(s[i], .99)
		all[i].added = all[i].p50 - all[0].p50
	}
	for i := range all {
		all[i].ratio, all[i].p99Ratio = all[i].added/all[reference].added, all[i].p99/all[noop].p99
	}
	return all
}

// compare prints a row for each variant, with the bounds of 95 % confidence, by bootstrap.
func compare(out io.Writer, s samples, all []variant, reference kind, random *rand.Rand) error {
	at := func(k kind) int { return slices.IndexFunc(all, func(v variant) bool { return v.kind == k }) }
	estimates := s.figures(at(reference), at(noop))
	var drawn [][]figures
	for range resamples {
		drawn = append(drawn, s.again(random).figures(at(reference), at(noop)))
	}
	for i, v := range all {
		e := estimates[i]
		metrics := []result.Metric{{Unit: "p50-ms", Value: e.p50}, {Unit: "p99-ms", Value: e.p99}}
		with := func(unit string, value func(figures) float64) {
			var values []float64
			for _, d := range drawn {
				values = append(values, value(d[i]))
			}
			metrics = append(metrics, result.Metric{Unit: unit, Value: value(e)},
				result.Metric{Unit: unit + "-low", Value: result.Quantile(values, .025)},
				result.Metric{Unit: unit + "-high", Value: result.Quantile(values, .975)})
		}
		if i > 0 {
			with("added-ms", func(f figures) float64 { return f.added })
			with("added-x-"+string(reference), func(f figures) float64 { return f.ratio })
			with("p99-x-noop", func(f figures) float64 { return f.p99Ratio })
		}
		if err := result.Write(out, v.String(), len(s[i]), metrics...); err != nil {
			return err
		}
	}
	return nil
}
