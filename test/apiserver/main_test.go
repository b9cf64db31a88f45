// Package apiserver_test proves warmpool on a real API server, installed from the manifests that ship.
package apiserver_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/controlplane"
	"warmpool.sh/test/install"
)

// One control plane and one warmpool serve all tests of this package; each test works in namespaces of its own.
var (
	cp       *controlplane.ControlPlane
	warmpool *install.Warmpool
	admin    client.Client
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctrl.SetLogger(klog.Background())
	ctx := context.Background()
	var err error
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if cp, err = controlplane.Start(ctx, controlplane.Options{Log: os.Stderr}); err != nil {
		return fail(err)
	}
	defer cp.Stop() //nolint:errcheck // the tests have spoken
	if admin, err = client.New(cp.Config, client.Options{}); err != nil {
		return fail(err)
	}
	if warmpool, err = install.Up(ctx, cp, install.Options{}); err != nil {
		return fail(err)
	}
	return m.Run()
}
