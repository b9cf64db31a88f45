// Package podadmission_test holds the rules about pods that the API server refuses to what a real one does with such pods.
package podadmission_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/webhook/cluster/live"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

const (
	namespaces, templates = 60, 25
	limit                 = 20 * time.Second // for admission to learn of what was created
)

const configuration = `
apiVersion: config.warmpool.sh/v1alpha1
kind: WarmPoolConfiguration
pools: [{name: cpu, nodePools: [cpu]}]
`

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// Of generated templates, in namespaces with generated LimitRanges and ResourceQuotas, the rules find fault with those
// whose pods the API server refuses, and with no others.
func TestRulesAgreeWithTheAPIServer(t *testing.T) {
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Log: t.Output()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cp.Stop()) })
	cfg := *cp.Config
	cfg.QPS = -1
	api, err := client.New(&cfg, client.Options{})
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	never := corev1.PreemptNever
	require.NoError(t, api.Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Value: -1000, PreemptionPolicy: &never}))
	require.NoError(t, api.Create(t.Context(), &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "kata"}, Handler: "kata",
		Overhead:   &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}},
		Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"kata": "true"}},
	}))
	for i := range namespaces {
		furnish(t, api, random, fmt.Sprintf("ns-%d", i))
	}
	facts, err := live.Read(t.Context(), cp.Config, func(*appsv1.Deployment) bool { return true })
	require.NoError(t, err)
	loaded, err := config.Load([]byte(configuration), policy.IDs())
	require.NoError(t, err)
	evaluator, err := policy.New(loaded, facts, time.Now())
	require.NoError(t, err)

	accepted, refused := 0, 0
	for i := range namespaces {
		for range templates {
			d := deployment(random, fmt.Sprintf("ns-%d", i))
			if err := api.Create(t.Context(), d.DeepCopy(), client.DryRunAll); err != nil {
				require.True(t, apierrors.IsInvalid(err), "%v", err)
				continue // such a placeholder cannot exist
			}
			found := faults(evaluator, d)
			create := func() error {
				pod := &corev1.Pod{ObjectMeta: *d.Spec.Template.ObjectMeta.DeepCopy(), Spec: *d.Spec.Template.Spec.DeepCopy()}
				pod.Namespace, pod.GenerateName = d.Namespace, "ph-"
				return api.Create(t.Context(), pod, client.DryRunAll)
			}
			var said error
			agree := func() bool {
				said = create()
				return (said != nil) == (len(found) > 0)
			}
			if !agree() { // or admission has not learned of all
				assert.Eventually(t, agree, limit, time.Second, "%s %s\nrules: %s", d.Namespace, text(d), strings.Join(found, "\n"))
			}
			if t.Failed() {
				t.Fatalf("API server: %v", said)
			}
			if said == nil {
				accepted++
			} else {
				refused++
			}
		}
	}
	t.Logf("%d pods accepted, %d refused", accepted, refused)
	assert.Greater(t, accepted, 100)
	assert.Greater(t, refused, 100)
}

func text(d *appsv1.Deployment) string {
	content, err := yaml.Marshal(d.Spec.Template.Spec)
	if err != nil {
		return err.Error()
	}
	return string(content)
}

// faults are what the rules find that would have each pod refused.
func faults(e *policy.Evaluator, d *appsv1.Deployment) []string {
	var found []string
	for _, f := range e.Check(e.Placeholder(d, d.Namespace)) {
		field := f.Error.Field
		if f.Rule.ID == "placeholder-pods" || f.Rule.ID == "placeholder-priority" && (strings.HasSuffix(field, ".priority") || strings.HasSuffix(field, ".preemptionPolicy")) {
			found = append(found, f.Error.Error())
		}
	}
	return found
}
