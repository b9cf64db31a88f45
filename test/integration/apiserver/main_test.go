// Package apiserver_test proves warmpool on a real API server, installed from the manifests that ship.
//
// With the environment variable WARMPOOL_FIELD_DATA naming a folder with workspace-pods.json (pods as a Workspace
// controller made them) and crds/ (the CRDs of jupyter-k8s), more tests use those.
package apiserver_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/test/harness/needs"
)

const (
	limit = 60 * time.Second // for anything that is waited for
	step  = 50 * time.Millisecond
)

// One control plane and one warmpool serve all tests of this package; each test works in namespaces of its own.
var (
	cp       *controlplane.ControlPlane
	warmpool *install.Warmpool
	admin    client.Client
	// fieldData is the folder with data from real clusters; empty where there is none.
	fieldData = os.Getenv("WARMPOOL_FIELD_DATA")
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctrl.SetLogger(klog.Background())
	ctx := context.Background()
	needs.Main(needs.ControlPlane, controlplane.Ready(ctx, controlplane.Options{}))
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
	if err := furnish(ctx); err != nil {
		return fail(err)
	}
	if fieldData == "" {
		fmt.Fprintln(os.Stderr, "WARMPOOL_FIELD_DATA is not set: no tests with data from real clusters")
	}
	code := m.Run()
	if err := checkLog(warmpool.Log); err != nil {
		return fail(err)
	}
	return code
}

// checkLog looks for what must not be in warmpool's log after all that the tests did to it.
func checkLog(path string) error {
	log, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the log of warmpool: %w", err)
	}
	var errs []error
	for line := range strings.Lines(string(log)) {
		for _, bad := range []string{"forbidden", "panic", "DATA RACE"} {
			if strings.Contains(line, bad) {
				errs = append(errs, fmt.Errorf("the log of warmpool has a line with %q: %s", bad, line))
			}
		}
	}
	return errors.Join(errs...)
}
