package live

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/karpenter/pkg/apis"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/needs"
	"warmpool.sh/webhook/cluster"
)

const auditedCluster = `
apiVersion: v1
kind: Namespace
metadata: {name: warm}
---
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: placeholder, namespace: warm, labels: {placeholder: "true"}}
spec:
  selector: {matchLabels: {app: placeholder}}
  template:
    metadata: {labels: {app: placeholder}}
    spec: {containers: [{name: pause, image: "pause:1"}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cpa, namespace: warm}
spec:
  selector: {matchLabels: {app: cpa}}
  template:
    metadata: {labels: {app: cpa}}
    spec:
      containers:
      - name: cpa
        image: "cpa:1"
        command: [/cluster-proportional-autoscaler, --namespace=warm]
        args: [--configmap, ratios, --target=deployment/placeholder]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: ratios, namespace: warm}
data: {linear: "{}"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: foreign, namespace: warm}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: warm, namespace: warm}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: placeholder}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: foreign, namespace: team}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: other}}}
---
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: cold, namespace: warm}
eventTime: "2026-11-01T00:00:00.000000Z"
reportingController: example.com/scheduler
reportingInstance: one
action: Scheduling
reason: FailedScheduling
type: Warning
note: no room
regarding: {kind: Pod, namespace: warm, name: placeholder-1}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: home, namespace: team}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: home}
spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, hostPath: {path: /tmp}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: ours}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: our-pods}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: foreign}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: auditor, namespace: team}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: auditor}
rules:
- {apiGroups: ["", apps, karpenter.sh], resources: [nodes, namespaces, pods, deployments, nodepools], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: auditor}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: auditor}
subjects: [{kind: ServiceAccount, name: auditor, namespace: team}]
`

// The node class is of a kind that the test defines itself, as each provider has its own.
const nodeClasses = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: examplenodeclasses.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {kind: ExampleNodeClass, plural: examplenodeclasses}
  versions:
  - name: v1beta7
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const nodeClassObjects = `
apiVersion: example.com/v1beta7
kind: ExampleNodeClass
metadata: {name: good}
status: {conditions: [{type: Ready, status: "False", reason: NoSubnets}]}
---
apiVersion: example.com/v1beta7
kind: ExampleNodeClass
metadata: {name: foreign}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: of-good}
spec: {template: {spec: {requirements: [], nodeClassRef: {group: example.com, kind: ExampleNodeClass, name: good}}}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: of-absent}
spec: {template: {spec: {requirements: [], nodeClassRef: {group: absent.example.com, kind: AbsentNodeClass, name: gone}}}}
`

var auditScope = Scope{
	Workspaces:    labels.SelectorFromSet(labels.Set{"workspace": "yes"}),
	IsPlaceholder: func(d *appsv1.Deployment) bool { return d.Labels["placeholder"] == "true" },
	Placeholders:  "warm",
	Webhooks:      "ours",
	PodsWebhook:   "our-pods",
}

func startAudited(t *testing.T) *controlplane.ControlPlane {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	needs.Check(t, needs.ControlPlane, controlplane.Ready(ctx, controlplane.Options{}))
	plane, err := controlplane.Start(ctx, controlplane.Options{Log: t.Output()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, plane.Stop()) })
	require.NoError(t, plane.Apply(ctx, decode(t, string(apis.NodePoolCRD)+"\n---\n"+nodeClasses)...))
	require.NoError(t, plane.Apply(ctx, decode(t, auditedCluster+"\n---\n"+nodeClassObjects)...))
	return plane
}

// requests counts what goes to the API server, by the path and by the query without the place in a list.
type requests struct {
	mu    sync.Mutex
	count int
	paths []string
}

func (r *requests) of(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			r.mu.Lock()
			r.count++
			r.paths = append(r.paths, request.URL.Path)
			r.mu.Unlock()
			return next.RoundTrip(request)
		})
	})
	return config
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// addPods makes pods of Workspaces, of which every other one has a claim.
func addPods(t *testing.T, plane *controlplane.ControlPlane, from, to int) {
	t.Helper()
	direct, err := client.New(plane.Config, client.Options{})
	require.NoError(t, err)
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(20)
	for i := from; i < to; i++ {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("w%04d", i), Namespace: "team", Labels: map[string]string{"workspace": "yes"}},
			Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "notebook", Image: "notebook:1"}},
				Volumes: []corev1.Volume{{Name: "home", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "home"},
				}}},
			},
		}
		group.Go(func() error { return direct.Create(ctx, pod) })
	}
	require.NoError(t, group.Wait())
}

func readAll(t *testing.T, config *rest.Config) (*cluster.Snapshot, *Reading) {
	t.Helper()
	reading, err := NewReading(config, nil)
	require.NoError(t, err)
	facts := reading.Snapshot(t.Context(), func(*appsv1.Deployment) bool { return true })
	facts.Around = reading.Around(t.Context(), facts, auditScope)
	return facts, reading
}

// One API server serves all of this.
func TestReadingOfAnAudit(t *testing.T) {
	plane := startAudited(t)
	addPods(t, plane, 0, 3)
	few := &requests{}
	facts, reading := readAll(t, few.of(plane.Config))

	assert.Empty(t, reading.Unreadable())
	assert.Equal(t, 2, facts.Deployments.Len())
	assert.Equal(t, 3, facts.Pods.Len())
	assert.Equal(t, 1, facts.Budgets.Len(), "those of namespaces without placeholders are not read")
	assert.NotNil(t, facts.Budgets.Get("warm/warm"))
	assert.NotNil(t, facts.Events.Get("warm/cold"))
	assert.Equal(t, 1, facts.ConfigMaps.Len(), "only what a CPA names")
	assert.NotNil(t, facts.ConfigMaps.Get("warm/ratios"))
	assert.NotNil(t, facts.ClusterRoles.Get("cluster-admin"))
	assert.Equal(t, 1, facts.Volumes.Len())
	assert.Equal(t, 1, facts.Claims.Len())
	assert.Equal(t, 2, facts.MutatingWebhooks.Len())
	assert.True(t, facts.ValidatingWebhooks.Known())
	assert.Equal(t, 1, facts.NodeClasses.Len())
	assert.Equal(t, corev1.ConditionFalse, facts.NodeClasses.Get("ExampleNodeClass.example.com/good").Ready.Status)
	assert.True(t, facts.CapacityBuffers.Known(), "kinds that the cluster does not have have no objects")
	assert.False(t, facts.NodeClaims.Known())
	assert.Equal(t, "no NodeClaim CRD (karpenter.sh) in the cluster", facts.NodeClaims.Reason())

	t.Run("requests", func(t *testing.T) {
		assert.LessOrEqual(t, few.count, 60, strings.Join(few.paths, "\n"))
		for _, path := range few.paths {
			assert.NotContains(t, path, "secrets")
			assert.False(t, strings.HasSuffix(path, "/configmaps"), "ConfigMaps are not listed: %s", path)
		}
		addPods(t, plane, 3, pageSize)
		full := &requests{}
		facts, _ := readAll(t, full.of(plane.Config))
		assert.Equal(t, pageSize, facts.Pods.Len())
		assert.Equal(t, few.count, full.count, "one page of pods costs as much as three pods")
		addPods(t, plane, pageSize, pageSize+1)
		more := &requests{}
		facts, _ = readAll(t, more.of(plane.Config))
		assert.Equal(t, pageSize+1, facts.Pods.Len())
		assert.Equal(t, few.count+1, more.count, "one more page, one more request")
	})
	t.Run("what this user may not read", func(t *testing.T) {
		kubeconfig, err := plane.ServiceAccountKubeconfig(t.Context(), "team", "auditor")
		require.NoError(t, err)
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		require.NoError(t, err)
		facts, reading := readAll(t, config)
		assert.Equal(t, 2, facts.Deployments.Len())
		assert.Equal(t, pageSize+1, facts.Pods.Len())
		assert.Equal(t, 2, facts.NodePools.Len())
		assert.Equal(t, "this user may not list poddisruptionbudgets.policy in namespace warm", facts.Budgets.Reason())
		assert.Equal(t, "this user may not get ExampleNodeClass.example.com good", facts.NodeClasses.Reason())
		assert.Equal(t, "this user may not list clusterroles.rbac.authorization.k8s.io", facts.ClusterRoles.Reason())
		assert.Contains(t, reading.Unreadable(), "this user may not list daemonsets.apps")
		assert.Contains(t, reading.Unreadable(), "this user may not get configmaps in namespace warm")

		_, err = Read(t.Context(), config, func(*appsv1.Deployment) bool { return true })
		assert.ErrorContains(t, err, "this user may not list daemonsets.apps")
	})
}

func TestReadingOfNoCluster(t *testing.T) {
	_, err := NewReading(&rest.Config{Host: "127.0.0.1:1"}, nil)
	assert.ErrorContains(t, err, "reach the API server")
}
