package lastseen_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/needs"
	"warmpool.sh/webhook/cluster/lastseen"
	"warmpool.sh/webhook/cluster/live"
)

const (
	namespace  = "warmpool-system"
	startLimit = 5 * time.Minute // programs may have to be built first
	limit      = 60 * time.Second
	step       = 50 * time.Millisecond
)

// replica is a warmpool that only reads and remembers, as the ServiceAccount that ships.
type replica struct {
	facts    *live.Reader
	recorder *lastseen.Recorder
	stop     func()
}

func startReplica(t *testing.T, config *rest.Config) *replica {
	t.Helper()
	mgr, err := manager.New(config, manager.Options{
		Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:          live.CacheOptions(namespace, namespace, func(*appsv1.Deployment) bool { return false }),
		LeaderElection: true, LeaderElectionID: "warmpool", LeaderElectionNamespace: namespace, LeaderElectionReleaseOnCancel: true,
	})
	require.NoError(t, err)
	facts, err := live.New(mgr, namespace)
	require.NoError(t, err)
	recorder := lastseen.NewRecorder(mgr.GetClient(), namespace, logr.Discard())
	require.NoError(t, mgr.Add(facts))
	require.NoError(t, mgr.Add(recorder))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			cancel()
			assert.NoError(t, <-ended)
		}
	}
	t.Cleanup(stop)
	eventually(t, "every replica reads", facts.Synced)
	return &replica{facts, recorder, stop}
}

func (r *replica) known() []string {
	return slices.Collect(maps.Keys(maps.Collect(r.facts.Snapshot().LastSeen.All())))
}

func (r *replica) knows(keys ...string) func() bool {
	return func() bool { return slices.Equal(slices.Sorted(slices.Values(r.known())), keys) }
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, limit, step, what)
}

func node(name, instanceType string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelInstanceTypeStable: instanceType}},
		Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3920m")}},
	}
}

// startPlane gives the administrator's access and that of the ServiceAccount with the rights that ship.
func startPlane(t *testing.T) (admin, shipped *rest.Config) {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	needs.Check(t, needs.ControlPlane, controlplane.Ready(ctx, controlplane.Options{}))
	plane, err := controlplane.Start(ctx, controlplane.Options{Log: t.Output()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, plane.Stop()) })
	for _, name := range []string{"namespaces.yaml", "warmpool/rbac.yaml"} {
		file, err := os.Open(filepath.Join("..", "..", "..", "manifests", "base", name))
		require.NoError(t, err)
		objects, err := controlplane.Decode(file)
		require.NoError(t, err)
		require.NoError(t, file.Close())
		require.NoError(t, plane.Apply(ctx, objects...))
	}
	kubeconfig, err := plane.ServiceAccountKubeconfig(ctx, namespace, "warmpool")
	require.NoError(t, err)
	shipped, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	return plane.Config, shipped
}

// A pool that is scaled to zero is known to every replica, to the next leader, and after a restart.
func TestReplicasRememberWithTheRightsThatShip(t *testing.T) {
	admin, shipped := startPlane(t)
	direct, err := client.New(admin, client.Options{})
	require.NoError(t, err)
	ctx := t.Context()

	first := startReplica(t, shipped)
	assert.Empty(t, first.known())
	first.recorder.Record(map[string][]*corev1.Node{"gpu": {node("n1", "g5.xlarge")}})
	eventually(t, "the leader writes what it saw", first.knows("gpu/g5.xlarge"))
	lease := &coordinationv1.Lease{}
	require.NoError(t, direct.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "warmpool"}, lease))
	leader := *lease.Spec.HolderIdentity
	eventually(t, "leader election writes its Event", func() bool {
		events := &corev1.EventList{}
		return direct.List(ctx, events, client.InNamespace(namespace)) == nil &&
			slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == "LeaderElection" })
	})

	second := startReplica(t, shipped)
	eventually(t, "another replica reads it", second.knows("gpu/g5.xlarge"))
	second.recorder.Record(map[string][]*corev1.Node{"gpu": {node("n2", "g5.2xlarge")}})
	require.NoError(t, direct.Get(ctx, client.ObjectKeyFromObject(lease), lease))
	assert.Equal(t, leader, *lease.Spec.HolderIdentity)
	first.stop()
	eventually(t, "the next leader adds what it saw itself", second.knows("gpu/g5.2xlarge", "gpu/g5.xlarge"))
	second.stop()

	restarted := startReplica(t, shipped)
	eventually(t, "it survives a restart", restarted.knows("gpu/g5.2xlarge", "gpu/g5.xlarge"))
	configMap := &corev1.ConfigMap{}
	require.NoError(t, direct.Get(ctx, client.ObjectKey{Namespace: namespace, Name: lastseen.Name}, configMap))
	configMap.Data["gpu"] = "{"
	require.NoError(t, direct.Update(ctx, configMap))
	eventually(t, "what cannot be read is unknown", func() bool {
		seen := restarted.facts.Snapshot().LastSeen
		return seen.Known() && seen.Len() == 0 && seen.Malformed("gpu") != ""
	})
	restarted.recorder.Record(map[string][]*corev1.Node{"gpu": {node("n3", "g5.xlarge")}})
	eventually(t, "and written anew", restarted.knows("gpu/g5.xlarge"))

	clients, err := kubernetes.NewForConfig(admin)
	require.NoError(t, err)
	once := lastseen.Read(ctx, clients.CoreV1(), namespace)
	assert.NotNil(t, once.Get("gpu/g5.xlarge"))
	assert.True(t, lastseen.Read(ctx, clients.CoreV1(), "elsewhere").Known())
	clients, err = kubernetes.NewForConfig(rest.AnonymousClientConfig(admin))
	require.NoError(t, err)
	assert.Contains(t, lastseen.Read(ctx, clients.CoreV1(), namespace).Reason(), "read ConfigMap warmpool-system/warmpool-last-seen: ")
}
