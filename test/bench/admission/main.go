// Command admission measures on a real API server what webhooks, warmpool's among them, and a MutatingAdmissionPolicy add to
// the creation of a pod; and what the webhooks' servers do when they are asked directly, over HTTP/2 and TLS:
//
//	go run ./test/bench/admission
//
// All of them are there at once, each for the pods of a namespace of its own, and take turns.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// options say how much is measured.
type options struct {
	seed      uint64
	creations int // of each variant
	warmup    int // creations of each variant that are not counted

	bursts, workers, each int // creations of each variant are the product

	rounds int // of the requests to the servers
	window time.Duration
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the order in which the variants take turns")
	flag.IntVar(&o.creations, "n", 2000, "pods of each variant to create one after another")
	flag.IntVar(&o.warmup, "warmup", 100, "pods of each variant to create before, not counted")
	flag.IntVar(&o.bursts, "bursts", 5, "bursts of each variant in which pods are created at once")
	flag.IntVar(&o.workers, "workers", 200, "pods that are created at once")
	flag.IntVar(&o.each, "each", 2, "pods that each worker creates in a burst")
	flag.IntVar(&o.rounds, "rounds", 10, "rounds in which the servers are asked directly")
	flag.DurationVar(&o.window, "window", 400*time.Millisecond, "how long each server is asked in a round")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	if err := run(context.Background(), o, os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) (err error) {
	c, err := start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	random := rand.New(rand.NewPCG(o.seed, 0))
	if err := c.ask(ctx, o, random, out); err != nil {
		return fmt.Errorf("ask the servers directly: %w", err)
	}
	if err := c.createInTurn(ctx, o, random, out); err != nil {
		return fmt.Errorf("create pods in turn: %w", err)
	}
	if err := c.createAtOnce(ctx, o, random, out); err != nil {
		return fmt.Errorf("create pods at once: %w", err)
	}
	return nil
}
