// Package cel_test holds the exported policy to the webhook's placement, on a real API server: whatever pod is created, both
// make the same of it.
package cel_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/needs"
)

const (
	limit = 60 * time.Second // for anything that is waited for
	step  = 50 * time.Millisecond
	// plain is a namespace without a policy: what the API server itself makes of a pod.
	plain = "plain"
)

var (
	long = flag.Bool("long", false, "compare 20,000 generated pods, not 500")
	// seed may be a failed run's.
	seed = flag.Uint64("seed", 1, "the first of the seeds of the generated clusters")

	cp     *controlplane.ControlPlane
	admin  client.Client
	poster *http.Client // for bodies that are no objects of Go, with nulls
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	needs.Main(needs.ControlPlane, controlplane.Ready(context.Background(), controlplane.Options{}))
	if err := start(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer cp.Stop() //nolint:errcheck // the tests have spoken
	return m.Run()
}

func start(ctx context.Context) (err error) {
	if cp, err = controlplane.Start(ctx, controlplane.Options{Log: os.Stderr}); err != nil {
		return err
	}
	if admin, err = client.New(cp.Config, client.Options{}); err != nil {
		return err
	}
	if poster, err = rest.HTTPClientFor(cp.Config); err != nil {
		return err
	}
	never := corev1.PreemptNever
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: plain}},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "overprovisioning-placeholder"}, Value: -1000, PreemptionPolicy: &never},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Value: 10},
	} {
		if err := admin.Create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}
