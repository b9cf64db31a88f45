// Command tour shows warmpool at work on a real API server: it starts one, installs warmpool on it from the shipped
// manifests, and lets the objects of manifests/try pass through it. make run calls it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

type options struct {
	once bool // end after the tour
	full bool // run the pods too
}

func main() {
	ctrl.SetLogger(klog.Background())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends at once
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// execute returns the exit code: 1 when a step did not show what it should, 2 for bad usage.
func execute(ctx context.Context, args []string, out, errs io.Writer) int {
	var o options
	flags := flag.NewFlagSet("tour", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.BoolVar(&o.once, "once", false, "end after the tour")
	flags.BoolVar(&o.full, "full", false, "run the pods too, on nodes that KWOK plays")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	err := run(ctx, o, newScreen(out))
	if err == nil {
		return 0
	}
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	// A report that cannot be written has no other place to go.
	_, _ = fmt.Fprintln(errs, "tour:", err)
	return 1
}
