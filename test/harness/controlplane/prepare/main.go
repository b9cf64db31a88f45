// Command prepare gets the programs of package controlplane, by download or build, and says how far it is: go test would
// show that only when the tests have ended. Where all are there it says nothing.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"warmpool.sh/test/harness/controlplane"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := controlplane.PrepareAll(ctx, os.Stderr)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "get the programs of the control plane:", err)
		os.Exit(1)
	}
}
