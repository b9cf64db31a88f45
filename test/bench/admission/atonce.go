package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/bench/proc"
	"warmpool.sh/test/bench/result"
)

// crowd is what came of a variant's bursts.
type crowd struct {
	took   []time.Duration // of each pod
	failed []error
	wall   time.Duration
	// cpu of the API server, of the variant's own webhook, and of warmpool, which sees each Workspace pod come and go
	// whoever places it.
	apiServer, webhook, warmpool time.Duration
}

// createAtOnce has many workers create pods at the same time, for one variant after another.
func (c *cluster) createAtOnce(ctx context.Context, o options, random *rand.Rand, out io.Writer) error {
	crowds := make([]crowd, len(variants))
	for range o.bursts {
		for _, i := range random.Perm(len(variants)) {
			if err := c.burst(ctx, o, variants[i], &crowds[i]); err != nil {
				return err
			}
			pods := client.InNamespace(variants[i].kind.namespace())
			if err := c.admin.DeleteAllOf(ctx, &corev1.Pod{}, pods, client.GracePeriodSeconds(0)); err != nil {
				return err
			}
		}
	}
	for i, v := range variants {
		if err := crowds[i].write(out, v); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) burst(ctx context.Context, o options, v variant, all *crowd) error {
	before, err := c.processorTimes(v)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	began := time.Now()
	for range o.workers {
		first := c.created
		c.created += o.each
		group.Go(func() {
			for i := range o.each {
				took, err := c.create(ctx, v, fmt.Sprintf("workspace-llama-7f6b9d5c8-%07d", first+i+1))
				mu.Lock()
				if err != nil {
					all.failed = append(all.failed, err)
				} else {
					all.took = append(all.took, took)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	all.wall += time.Since(began)
	after, err := c.processorTimes(v)
	all.apiServer += after[0] - before[0]
	all.webhook += after[1] - before[1]
	all.warmpool += after[2] - before[2]
	return err
}

// processorTimes are those of the API server, of the variant's webhook and of warmpool.
func (c *cluster) processorTimes(v variant) (times [3]time.Duration, err error) {
	pids := [3]int{0: c.PID(apiServer), 2: c.warmpool.PID()}
	if s, ok := c.server(v.kind); ok {
		pids[1] = s.pid
	}
	for i, pid := range pids {
		if pid == 0 {
			continue
		}
		if times[i], err = proc.CPU(pid); err != nil {
			return times, err
		}
	}
	return times, nil
}

func (w *crowd) write(out io.Writer, v variant) error {
	if len(w.took) == 0 {
		return fmt.Errorf("no pod of %s was created: %w", v, w.failed[0])
	}
	if len(w.failed) > 0 {
		_, _ = fmt.Fprintf(os.Stderr, "%s: %d errors, the first: %v\n", v, len(w.failed), w.failed[0]) // they are counted below
	}
	pods := float64(len(w.took))
	return result.Write(out, "AtOnce/"+string(v.kind), len(w.took)+len(w.failed),
		result.Metric{Unit: "errors", Value: float64(len(w.failed))},
		result.Metric{Unit: "pods/s", Value: pods / w.wall.Seconds()},
		result.Metric{Unit: "p50-ms", Value: milliseconds(result.Quantile(w.took, .5))},
		result.Metric{Unit: "p99-ms", Value: milliseconds(result.Quantile(w.took, .99))},
		result.Metric{Unit: "apiserver-cpu-ms/pod", Value: milliseconds(w.apiServer) / pods},
		result.Metric{Unit: "webhook-cpu-ms/pod", Value: milliseconds(w.webhook) / pods},
		result.Metric{Unit: "warmpool-cpu-ms/pod", Value: milliseconds(w.warmpool) / pods})
}
