// Command imagesync measures on a real API server how soon placeholders follow the templates of their pools:
//
//	go run ./test/bench/imagesync
//
// Latency is the time from before a template is edited until a watch has shown all placeholders of its pool with the new
// image. It stands beside that of a plain client that makes the same patches itself, in turn. Cold is the time from the start
// of the process until all placeholders are in sync, where none was.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"warmpool.sh/test/bench/result"
	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/test/harness/storm"
)

// apart is longer than the time in which image sync takes a second change for a part of the first.
const apart = 15 * time.Second

func main() {
	var layout storm.Layout
	flag.IntVar(&layout.Pools, "pools", 100, "pools")
	flag.IntVar(&layout.Templates, "templates", 5, "templates of each pool")
	flag.IntVar(&layout.Placeholders, "placeholders", 5, "placeholders of each pool")
	changes := flag.Int("changes", 200, "template changes to measure")
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	if err := run(context.Background(), layout, *changes); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, layout storm.Layout, changes int) (err error) {
	cp, err := controlplane.Start(ctx, controlplane.Options{Measured: true, Log: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Stop()) }()
	cluster, err := storm.Install(ctx, cp, layout)
	if err != nil {
		return err
	}
	watch, err := storm.NewWatch(ctx, cp)
	if err != nil {
		return err
	}
	b := &bench{Cluster: cluster, watch: watch, versions: make([]int, layout.Pools), edited: make([]time.Time, layout.Pools)}
	warmpool, err := cluster.Run(ctx, cluster.Port)
	if err != nil {
		return err
	}
	if err := errors.Join(cluster.Fill(ctx), b.furnishBare(ctx)); err != nil {
		return err
	}
	if err := b.allSynced(ctx); err != nil {
		return err
	}
	if err := b.measureLatency(ctx, changes); err != nil {
		return err
	}
	cold, err := b.measureCold(ctx, warmpool)
	if err != nil {
		return err
	}
	return b.write(os.Stdout, cold)
}

type bench struct {
	*storm.Cluster
	watch *storm.Watch
	// versions of the first template of each pool; the others stay as they are but for the cold start. edited is when.
	versions []int
	edited   []time.Time
	others   int

	synced, bare []time.Duration
}

// images of the pool's templates.
func (b *bench) images(pool int) []string {
	var images []string
	for i := range b.Templates {
		version := b.others
		if i == 0 {
			version = b.versions[pool]
		}
		images = append(images, storm.Image(pool, i, version))
	}
	return images
}

func (b *bench) poolSynced(ctx context.Context, pools ...int) error {
	return b.watch.Until(ctx, func(get func(string) *appsv1.Deployment) bool {
		return !slices.ContainsFunc(pools, func(pool int) bool {
			images := b.images(pool)
			for i := range b.Placeholders {
				if !storm.Pulls(get(storm.PlaceholderName(pool, i)), images) {
					return true
				}
			}
			return false
		})
	})
}

func (b *bench) allSynced(ctx context.Context) error {
	var pools []int
	for pool := range b.Pools {
		pools = append(pools, pool)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if err := b.poolSynced(ctx, pools...); err != nil {
		return fmt.Errorf("wait until all placeholders are in sync: %w", err)
	}
	return nil
}

// measureLatency edits the pools' first templates in turn, and each time makes the same patches itself.
func (b *bench) measureLatency(ctx context.Context, changes int) error {
	for n := range changes {
		pool := n % b.Pools
		time.Sleep(time.Until(b.edited[pool].Add(apart)))
		b.versions[pool]++
		began := time.Now()
		if err := b.Edit(ctx, pool, 0, b.versions[pool]); err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, time.Minute)
		err := b.poolSynced(limited, pool)
		cancel()
		if err != nil {
			return fmt.Errorf("wait for the placeholders of %s: %w", storm.PoolName(pool), err)
		}
		b.edited[pool] = time.Now()
		b.synced = append(b.synced, b.edited[pool].Sub(began))
		took, err := b.patchBare(ctx, n+1)
		if err != nil {
			return err
		}
		b.bare = append(b.bare, took)
	}
	return nil
}

// measureCold changes all templates while warmpool does not run, and starts it.
func (b *bench) measureCold(ctx context.Context, warmpool *install.Warmpool) (time.Duration, error) {
	if err := warmpool.Stop(); err != nil {
		return 0, err
	}
	b.others++
	for pool := range b.Pools {
		b.versions[pool]++
		for i := range b.Templates {
			version := b.others
			if i == 0 {
				version = b.versions[pool]
			}
			if err := b.Edit(ctx, pool, i, version); err != nil {
				return 0, err
			}
		}
	}
	began := time.Now()
	if _, err := b.Run(ctx, b.Port); err != nil {
		return 0, err
	}
	err := b.allSynced(ctx)
	return time.Since(began), err
}

func (b *bench) write(out io.Writer, cold time.Duration) error {
	quantile := func(times []time.Duration, share float64) float64 {
		return float64(result.Quantile(times, share)) / float64(time.Millisecond)
	}
	write := func(name string, times []time.Duration, more ...result.Metric) error {
		return result.Write(out, "ImageSync/"+name, len(times), append([]result.Metric{
			{Unit: "p50-ms", Value: quantile(times, .5)}, {Unit: "p99-ms", Value: quantile(times, .99)}, {Unit: "most-ms", Value: quantile(times, 1)},
		}, more...)...)
	}
	return errors.Join(
		write("bare-patches", b.bare),
		write("template-change", b.synced, result.Metric{Unit: "p50-x-bare", Value: quantile(b.synced, .5) / quantile(b.bare, .5)}),
		result.Write(out, "ImageSync/cold", b.Pools*b.Placeholders, result.Metric{Unit: "s", Value: cold.Seconds()}),
	)
}
