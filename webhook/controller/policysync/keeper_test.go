package policysync

import (
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

// server is what an API server serves of the group.
func server(kinds ...string) discovery.ServerResourcesInterface {
	list := &metav1.APIResourceList{GroupVersion: "admissionregistration.k8s.io/v1"}
	for _, kind := range kinds {
		list.APIResources = append(list.APIResources, metav1.APIResource{Kind: kind})
	}
	return &fake.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{list}}}
}

// Without the API no replica is ready, and as soon as it is there all are that do not lead.
func TestReadyWhereItIsServed(t *testing.T) {
	k := &Keeper{log: logr.Discard(), metrics: newMetrics(), resources: server("MutatingWebhookConfiguration", "ValidatingAdmissionPolicy")}
	require.ErrorContains(t, k.Ready(nil), "this API server has no MutatingAdmissionPolicy in admissionregistration.k8s.io/v1")
	k.resources = &fake.FakeDiscovery{Fake: &clienttesting.Fake{}}
	require.ErrorContains(t, k.Ready(nil), "is not known")
	k.resources = server("MutatingAdmissionPolicy")
	require.NoError(t, k.Ready(nil))
	k.resources = nil
	require.NoError(t, k.Ready(nil), "it is not asked again")
}

// The leader is ready, and says so by its metric, while there is no fault.
func TestReadyOfLeader(t *testing.T) {
	k := &Keeper{log: logr.Discard(), metrics: newMetrics(), resources: server("MutatingAdmissionPolicy")}
	assert.Equal(t, 2, testutil.CollectAndCount(k), "the counters alone")
	k.say(errUnwritten, false)
	require.ErrorIs(t, k.Ready(nil), errUnwritten)
	fault := errors.New("fault")
	k.say(fault, true)
	require.ErrorIs(t, k.Ready(nil), fault)
	assert.Equal(t, 3, testutil.CollectAndCount(k))
	k.say(nil, false)
	require.NoError(t, k.Ready(nil))
	assert.EqualValues(t, 0, k.current.Load(), "not yet in every API server")
	k.say(nil, true)
	require.NoError(t, k.Ready(nil))
	assert.EqualValues(t, 1, k.current.Load())
	problems, err := testutil.CollectAndLint(k)
	require.NoError(t, err)
	assert.Empty(t, problems)
}

// A sample belongs to its pool, whatever selects Workspaces and accelerators.
func TestSamples(t *testing.T) {
	cfg, err := config.Load([]byte("apiVersion: "+config.APIVersion+"\nkind: "+config.Kind+`
workspaces: {selector: {matchLabels: {a: b}, matchExpressions: [
  {key: a, operator: Exists}, {key: in, operator: In, values: [x, y]}, {key: out, operator: NotIn, values: [x]}, {key: none, operator: DoesNotExist}, {key: some, operator: Exists}]}}
pools:
- {name: cpu, nodePools: [cpu]}
- {name: large, nodePools: [large]}
- {name: gpu, nodePools: [gpu], accelerators: ["nvidia.com/*"]}
- {name: mig, nodePools: [mig], accelerators: ["nvidia.com/mig-?g.*"]}
- {name: one, nodePools: [one], accelerators: ["example.com/[ab]c", example.com/npu]}
- {name: odd, nodePools: [odd], accelerators: ["example.com/[ab]c"]}
`), policy.IDs())
	require.NoError(t, err)
	e, err := policy.New(cfg, &cluster.Snapshot{}, time.Unix(0, 0))
	require.NoError(t, err)
	for _, pool := range e.Pools().All() {
		sample := sampleOf(e, pool, "warmpool-system")
		if pool.Config.Name == "odd" {
			assert.Nil(t, sample)
			continue
		}
		require.NotNil(t, sample, pool.Config.Name)
		assert.True(t, e.IsWorkspace(sample.Labels))
		o := e.Pod(sample, sample.Namespace)
		assert.Equal(t, pool.Config.Name, o.PoolName())
		assert.NotEmpty(t, e.Mutate(o), "there is something to compare")
	}
}
