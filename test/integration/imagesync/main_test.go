// Package imagesync_test proves image sync with real controllers, a real scheduler and KWOK's nodes, warmpool being
// installed from the manifests that ship.
package imagesync_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/needs"
)

const (
	limit = 90 * time.Second // for anything that is waited for: all tests run at once
	step  = 100 * time.Millisecond
)

// shared is the cluster of all tests but those that restart warmpool; each has pools, templates and placeholders of its own.
var shared *cluster

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctrl.SetLogger(klog.Background())
	ctx := context.Background()
	needs.Main(needs.ControlPlane, controlplane.Ready(ctx, controlplane.Options{ControllerManager: true, Scheduler: true, KWOK: true}))
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if _, err := controlplane.PrepareKubectl(ctx); err != nil {
		return fail(err)
	}
	cp, err := controlplane.Start(ctx, controlplane.Options{
		ControllerManager: true, Scheduler: true, KWOK: true, AuditPolicy: auditPolicy, Log: os.Stderr,
	})
	if err != nil {
		return fail(err)
	}
	defer cp.Stop() //nolint:errcheck // the tests have spoken
	if shared, err = newCluster(ctx, cp, true); err != nil {
		return fail(err)
	}
	if err := shared.furnish(ctx); err != nil {
		return fail(err)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil { // they wait most of the time
		return fail(err)
	}
	code := m.Run()
	if err := shared.checkLog(); err != nil {
		return fail(err)
	}
	return code
}
