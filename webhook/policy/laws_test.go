package policy_test

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/test/generate"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

// TestLaws holds the objects of all cases to the laws, with all rules on.
func TestLaws(t *testing.T) {
	for _, file := range glob(t, filepath.Join("testdata", "*", "*.txtar")) {
		t.Run(file, func(t *testing.T) {
			c := readCase(t, file)
			e := c.evaluator(t)
			for _, section := range []string{"object.yaml", "old.yaml"} {
				if object := c.object(t, e, section); object != nil {
					assertLaws(t, e, object)
				}
			}
		})
	}
}

// FuzzLaws holds random placeholders and Workspace pods to the laws.
func FuzzLaws(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := generate.New(seed)
		e, err := policy.New(r.Config(), r.Snapshot(), time.Unix(0, 0))
		require.NoError(t, err)
		assertLaws(t, e, e.Placeholder(r.Placeholder(), "warm"))
		assertLaws(t, e, e.Pod(r.WorkspacePod(), "team"))
	})
}

// assertLaws: the input is unchanged; the patch makes of the input's JSON what the rules see; a second pass changes
// nothing; and nothing that a rule could fill is missing afterwards.
func assertLaws(t *testing.T, e *policy.Evaluator, object *policy.Object) {
	t.Helper()
	input := rebuild(e, object)
	before, err := json.Marshal(whole(input))
	require.NoError(t, err)

	output := rebuild(e, input)
	patch := e.Mutate(output)
	findings := e.Check(output)
	unchanged, err := json.Marshal(whole(input))
	require.NoError(t, err)
	assert.JSONEq(t, string(before), string(unchanged), "the input is unchanged")

	patched := before
	if len(patch) > 0 {
		operations, err := patch.JSON()
		require.NoError(t, err)
		decoded, err := jsonpatch.DecodePatch(operations)
		require.NoError(t, err)
		patched, err = decoded.Apply(before)
		require.NoError(t, err, "%s", operations)
	}
	after, err := json.Marshal(whole(output))
	require.NoError(t, err)
	assert.JSONEq(t, string(after), string(patched), "patch and object agree")

	again := rebuild(e, output)
	assert.Empty(t, e.Mutate(again), "a second pass changes nothing")
	assert.Equal(t, findings, e.Check(again), "and finds the same")

	for _, f := range findings {
		couldAct := object.Pool != nil && !object.Pool.Fit(object.Spec).Conflict && object.Spec.NodeName == "" && f.Action != config.Off
		if f.Rule.Fills != "" && f.Error.Type == field.ErrorTypeRequired && couldAct {
			assert.Fail(t, "left missing what could be filled", "%s: %v", f.Rule.ID, f.Error)
		}
	}
}

// rebuild makes a new Object from the same Deployment or Pod, so that nothing is shared but what rules must not write.
func rebuild(e *policy.Evaluator, o *policy.Object) *policy.Object {
	if o.Deployment != nil {
		return e.Placeholder(o.Deployment, o.Namespace)
	}
	return e.Pod(o.Pod, o.Namespace)
}

func whole(o *policy.Object) any {
	if o.Deployment != nil {
		return (*appsv1.Deployment)(o.Deployment)
	}
	return (*corev1.Pod)(o.Pod)
}
