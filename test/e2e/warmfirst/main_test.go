// Package warmfirst_test counts, on the real kube-scheduler, how many Workspaces land on a warm node: without and with
// what warmpool adds. docs/warm-first.md has the table.
package warmfirst_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/needs"
)

const (
	startLimit = 30 * time.Minute // programs may have to be built first
	limit      = 2 * time.Minute  // for anything that is waited for
	step       = 50 * time.Millisecond

	namespace = "overprovisioning" // of placeholders
	team      = "default"          // of Workspaces
	poolLabel = "karpenter.sh/nodepool"
	gpu       = corev1.ResourceName("nvidia.com/gpu")
)

var (
	long   = flag.Bool("long", false, "run each scenario 6 times, not 3, and bind 1000 Workspaces, not 100")
	update = flag.Bool("update", false, "run each scenario 20 times and write what was counted to docs/warm-first.md; implies -long")
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	flag.Parse()
	*long = *long || *update
	os.Exit(m.Run())
}

func runs() int {
	switch {
	case *update:
		return 20
	case *long:
		return 6 // each zone and each image more than once
	}
	return 3
}

// lab is a control plane with nodes that are played.
type lab struct{ client.WithWatch }

func newLab(t *testing.T) *lab {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	needs.Check(t, needs.ControlPlane, controlplane.Ready(ctx, controlplane.Options{ControllerManager: true, Scheduler: true, KWOK: true}))
	plane, err := controlplane.Start(ctx, controlplane.Options{ControllerManager: true, Scheduler: true, KWOK: true, Log: t.Output()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, plane.Stop()) })
	admin, err := client.NewWithWatch(plane.Config, client.Options{})
	require.NoError(t, err)
	never := corev1.PreemptNever
	l := &lab{admin}
	l.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "placeholder"}, Value: -1000, PreemptionPolicy: &never})
	l.wait(t, "the ServiceAccounts are made", func() bool {
		return slices.IndexFunc([]string{namespace, team}, func(ns string) bool {
			return l.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "default"}, &corev1.ServiceAccount{}) != nil
		}) < 0
	})
	return l
}

func (l *lab) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		require.NoError(t, l.Create(t.Context(), object))
	}
}

func (l *lab) wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, limit, step, what)
}

// pods are the pods with the labels, by the names of their nodes.
func (l *lab) pods(t *testing.T, namespace string, labels client.MatchingLabels) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	require.NoError(t, l.List(t.Context(), &list, client.InNamespace(namespace), labels))
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int {
		if a.Spec.NodeName != b.Spec.NodeName {
			return map[bool]int{true: -1, false: 1}[a.Spec.NodeName < b.Spec.NodeName]
		}
		return 0
	})
	return list.Items
}

// nodes makes nodes of 16 CPUs and 4 GPUs in three zones, one after another.
func (l *lab) nodes(t *testing.T, pool string, count int) {
	t.Helper()
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"),
		corev1.ResourcePods: resource.MustParse("110"), gpu: resource.MustParse("4"),
	}
	for i := range count {
		name := fmt.Sprintf("%s-%03d", pool, i)
		l.create(t, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
				Labels: map[string]string{corev1.LabelHostname: name, poolLabel: pool, corev1.LabelOSStable: "linux", corev1.LabelTopologyZone: zones[i%len(zones)]},
			},
			Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
		})
	}
	l.wait(t, "the nodes are ready", func() bool {
		var list corev1.NodeList
		require.NoError(t, l.List(t.Context(), &list, client.MatchingLabels{poolLabel: pool}))
		return !slices.ContainsFunc(list.Items, func(n corev1.Node) bool {
			return len(n.Spec.Taints) > 0 || !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			})
		})
	})
}

var zones = []string{"zone-a", "zone-b", "zone-c"}
