package cel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/cel"
	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

// world is a configuration with the facts of a cluster. Its policy holds for the pods of one namespace, so that many worlds
// share the API server.
type world struct {
	namespace string
	seed      uint64 // of a generated one
	config    *config.WarmPoolConfiguration
	facts     *cluster.Snapshot
	evaluator *policy.Evaluator
}

// atNight is when the exemptions of the cases are judged.
var atNight = time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)

func newWorld(t *testing.T, namespace string, cfg *config.WarmPoolConfiguration, facts *cluster.Snapshot) *world {
	t.Helper()
	evaluator, err := policy.New(cfg, facts, atNight)
	require.NoError(t, err)
	return &world{namespace: namespace, config: cfg, facts: facts, evaluator: evaluator}
}

// install applies the policies of the worlds and waits until they are in force.
func install(t *testing.T, worlds ...*world) {
	t.Helper()
	cfg, err := config.Load([]byte("apiVersion: "+config.APIVersion+"\nkind: "+config.Kind+"\npools: [{name: cpu, nodePools: [cpu]}]"), policy.IDs())
	require.NoError(t, err)
	last := newWorld(t, worlds[0].namespace+"-last", cfg, &cluster.Snapshot{})
	for _, w := range append(worlds, last) {
		w.create(t)
	}
	probe := []byte(`{"metadata":{"name":"probe","labels":{"workspace.jupyter.org/workspace-name":"w"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		pod, err := last.post(t, last.namespace, probe)
		if assert.NoError(c, err) {
			assert.NotNil(c, pod.Spec.Affinity)
		}
	}, limit, step, "the policies come into force")
}

// create makes the objects as exported; only names differ, and every error is told rather than ignored.
func (w *world) create(t *testing.T) {
	t.Helper()
	placement, err := cel.NewPlacement(w.evaluator, "warmpool-system")
	require.NoError(t, err)
	p, binding, parameters := placement.Policy, placement.Binding, placement.Parameters
	binding.Name, parameters.Name, parameters.Namespace = w.namespace, w.namespace, w.namespace
	p.Spec.FailurePolicy = new(admissionv1.Fail)
	binding.Spec.ParamRef.Name, binding.Spec.ParamRef.Namespace = parameters.Name, parameters.Namespace
	binding.Spec.ParamRef.ParameterNotFoundAction = new(admissionv1.DenyAction)
	binding.Spec.MatchResources = &admissionv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace}},
	}
	if err := admin.Create(t.Context(), p); !apierrors.IsAlreadyExists(err) { // it is the same for all
		require.NoError(t, err)
	}
	for _, object := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}, parameters, binding} {
		require.NoError(t, admin.Create(t.Context(), object))
	}
	t.Cleanup(func() { assert.NoError(t, admin.Delete(context.WithoutCancel(t.Context()), binding)) })
}

// refusal is an answer other than 201.
type refusal struct {
	code    int
	message string
}

func (r *refusal) Error() string { return fmt.Sprintf("%d: %s", r.code, r.message) }

// post creates a pod as a dry run.
func (w *world) post(t *testing.T, namespace string, body []byte) (*corev1.Pod, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, cp.Config.Host+"/api/v1/namespaces/"+namespace+"/pods?dryRun=All", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := poster.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it is read to its end
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusCreated {
		var status metav1.Status
		if err := json.Unmarshal(answer, &status); err != nil {
			return nil, err
		}
		return nil, &refusal{response.StatusCode, status.Message}
	}
	var pod corev1.Pod
	return &pod, json.Unmarshal(answer, &pod)
}

// outcome is what becomes of a pod: by the webhook, by the policy, and of one that was changed by the policy again.
type outcome struct {
	// refused is why the API server takes no such pod, with or without a policy.
	refused string
	// fault is how the policy differs from the webhook; empty where it does not.
	fault           string
	want, got, next *corev1.Pod
	pool            string
	changed         bool
}

func (w *world) try(t *testing.T, body []byte) outcome {
	t.Helper()
	before, err := w.post(t, plain, body)
	if err != nil {
		return outcome{refused: err.Error()}
	}
	if !w.evaluator.IsWorkspace(before.Labels) {
		return outcome{refused: "it is no Workspace pod"}
	}
	o := w.evaluator.Pod(before.DeepCopy(), w.namespace)
	patch := w.evaluator.Mutate(o)
	result := outcome{want: o.Pod, changed: len(patch) > 0, pool: o.PoolName()}
	if namesNode(&before.Spec) { // it is left to the audit
		result.want, result.changed = before, false
	}
	if result.got, err = w.post(t, w.namespace, body); err != nil {
		result.fault = "the policy fails: " + err.Error()
		return result
	}
	if !same(result.want, result.got) {
		result.fault = "the policy makes another pod of it than the webhook"
		return result
	}
	if !result.changed { // it would be the same pod again
		return result
	}
	again, err := json.Marshal(bare(result.got))
	require.NoError(t, err)
	if result.next, err = w.post(t, w.namespace, again); err != nil {
		result.fault = "the policy fails on the pod that it has placed: " + err.Error()
	} else if !same(result.got, result.next) {
		result.fault = "the policy changes the pod that it has placed"
	}
	return result
}

// namesNode reports whether the node selection asks for nodes by name, of which the policy does not know the pool.
func namesNode(spec *corev1.PodSpec) bool {
	if _, ok := spec.NodeSelector[corev1.LabelHostname]; ok {
		return true
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	return slices.ContainsFunc(spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		named := func(r corev1.NodeSelectorRequirement) bool {
			return r.Operator == corev1.NodeSelectorOpIn && (r.Key == corev1.LabelHostname || r.Key == metav1.ObjectNameField)
		}
		return slices.ContainsFunc(term.MatchExpressions, named) || slices.ContainsFunc(term.MatchFields, named)
	})
}

func same(a, b *corev1.Pod) bool { return equality.Semantic.DeepEqual(bare(a), bare(b)) }

// bare is a pod without what the API server gives to each anew.
func bare(pod *corev1.Pod) *corev1.Pod {
	p := pod.DeepCopy()
	p.Status = corev1.PodStatus{}
	p.Namespace, p.UID, p.CreationTimestamp, p.ManagedFields, p.Generation = "", "", metav1.Time{}, nil, 0
	if p.GenerateName != "" {
		p.Name = ""
	}
	return p
}
