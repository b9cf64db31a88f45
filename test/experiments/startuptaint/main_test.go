// Package startuptaint_test is an experiment on the real scheduler and the real Karpenter: does a start-up taint of the
// NodePool, which placeholders tolerate and a controller removes once the image is there, keep Workspaces from empty cold
// nodes, and what does it block? docs/warm-first.md draws the conclusion.
package startuptaint_test

import (
	"context"
	"flag"
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
	limit      = 90 * time.Second // for anything that is waited for
	watched    = 20 * time.Second // how long something is seen not to happen
	step       = 200 * time.Millisecond

	namespace = "default"
	// poolLabel is not Karpenter's: it waits for the NodeClaims of all nodes that have its label.
	poolLabel = "experiment/pool"
	// placeholder is the PriorityClass, and a label of the pods.
	placeholder = "placeholder"
	warmLabel   = "warmpool.sh/warm"
)

var (
	long   = flag.Bool("long", false, "try what has to be watched for a minute too")
	update = flag.Bool("update", false, "write what was seen to docs/warm-first.md; implies -long")

	// cold is the start-up taint of the experiment.
	cold = corev1.Taint{Key: "warmpool.sh/cold", Effect: corev1.TaintEffectNoSchedule}
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	flag.Parse()
	*long = *long || *update
	os.Exit(m.Run())
}

// lab is a control plane with Karpenter, whose nodes have 16 CPUs.
type lab struct {
	client.Client

	book *book
}

func newLab(t *testing.T) *lab {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	needs.Check(t, needs.ControlPlane, controlplane.Ready(ctx, controlplane.Options{ControllerManager: true, Scheduler: true, Karpenter: true}))
	plane, err := controlplane.Start(ctx, controlplane.Options{ControllerManager: true, Scheduler: true, Karpenter: true, Log: t.Output()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, plane.Stop()) })
	admin, err := client.New(plane.Config, client.Options{})
	require.NoError(t, err)
	never := corev1.PreemptNever
	require.NoError(t, admin.Create(t.Context(), &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: placeholder}, Value: -1000, PreemptionPolicy: &never,
	}))
	return &lab{Client: admin, book: &book{}}
}

// workspace asks for 10 of 16 CPUs: it fits on an empty node, and in place of a placeholder.
func workspace(pool, name string) *corev1.Pod {
	return pod(pool, name, "10")
}

// placeholderPod asks for 12 CPUs and tolerates the start-up taint.
func placeholderPod(pool, name string, warm bool) *corev1.Pod {
	p := pod(pool, name, "12")
	p.Labels["app"] = placeholder
	if warm {
		p.Labels[warmLabel] = "true"
	}
	p.Spec.PriorityClassName = placeholder
	p.Spec.TerminationGracePeriodSeconds = new(int64(0))
	p.Spec.Tolerations = []corev1.Toleration{{Key: cold.Key, Operator: corev1.TolerationOpExists, Effect: cold.Effect}}
	return p
}

func pod(pool, name, cpu string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pool + "-" + name, Labels: map[string]string{}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{poolLabel: pool},
			Containers: []corev1.Container{{
				Name: "main", Image: "example.com/image:1",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
			}},
		},
	}
}

func (l *lab) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		require.NoError(t, l.Create(t.Context(), object))
	}
}

// nodeOf is the node that the pod is bound to, empty while there is none.
func (l *lab) nodeOf(t *testing.T, p *corev1.Pod) string {
	t.Helper()
	require.NoError(t, l.Get(t.Context(), client.ObjectKeyFromObject(p), p))
	return p.Spec.NodeName
}

func (l *lab) bound(t *testing.T, p *corev1.Pod) string {
	t.Helper()
	require.Eventually(t, func() bool { return l.nodeOf(t, p) != "" }, limit, step, "pod %s is bound", p.Name)
	return p.Spec.NodeName
}

func (l *lab) neverBound(t *testing.T, p *corev1.Pod) {
	t.Helper()
	require.Never(t, func() bool { return l.nodeOf(t, p) != "" }, watched, step, "pod %s is bound to a node with the taint", p.Name)
}

func (l *lab) nodes(t *testing.T, pool string) []corev1.Node {
	t.Helper()
	var list corev1.NodeList
	require.NoError(t, l.List(t.Context(), &list, client.MatchingLabels{poolLabel: pool}))
	return list.Items
}

// waitNodes waits for the pool to have so many nodes that are ready for pods.
func (l *lab) waitNodes(t *testing.T, pool string, count int) {
	t.Helper()
	require.Eventually(t, func() bool {
		ready := 0
		for _, node := range l.nodes(t, pool) {
			notYet := slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
				return taint.Key == corev1.TaintNodeNotReady || taint.Key == "karpenter.sh/unregistered"
			})
			if !notYet && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			}) {
				ready++
			}
		}
		return ready == count
	}, limit, step, "pool %s has %d nodes", pool, count)
}
