package policy_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/test/harness/generate"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/prepull"
)

// TestLaws holds the objects of all cases to the laws, with all rules on.
func TestLaws(t *testing.T) {
	for _, file := range glob(t, filepath.Join("testdata", "*", "*.txtar")) {
		t.Run(file, func(t *testing.T) {
			c := readCase(t, file)
			e := c.evaluator(t)
			for _, section := range []string{"object.yaml", "old.yaml"} {
				if object := c.object(t, e, section); object != nil {
					filled := assertLaws(t, e, object, asCreated)
					assertImages(t, e, object, filled)
				}
			}
			if old := c.object(t, e, "old.yaml"); old != nil && old.Deployment != nil {
				assertUpdateLaws(t, e, c.object(t, e, "object.yaml").Deployment, old.Deployment)
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
		placeholder := r.Placeholder()
		created := e.Placeholder(placeholder, "warm")
		assertImages(t, e, created, assertLaws(t, e, created, asCreated))
		assertUpdateLaws(t, e, r.Update(placeholder), placeholder)
		assertLaws(t, e, e.Pod(r.WorkspacePod(), "team"), asCreated)
	})
}

// FuzzAudit audits random clusters: none makes it panic, and each finding is told the same way again.
func FuzzAudit(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := generate.New(seed)
		cfg, facts := r.Config(), r.Snapshot()
		r.Around(facts)
		var first string
		for i := range 3 {
			e, err := policy.New(cfg, facts, time.Unix(0, 0))
			require.NoError(t, err)
			findings, _ := e.Audit()
			text := printAudit(findings)
			if i == 0 {
				first = text
			}
			require.Equal(t, first, text)
			again, _ := e.Audit()
			require.Equal(t, text, printAudit(again), "the same Evaluator")
		}
	})
}

func asCreated(o *policy.Object) *policy.Object { return o }

// assertUpdateLaws holds an update to the laws. It changes no images where the update is about something else.
func assertUpdateLaws(t *testing.T, e *policy.Evaluator, now, old *appsv1.Deployment) {
	t.Helper()
	before := old.DeepCopy()
	object := e.Placeholder(now, now.Namespace)
	init := object.Spec.InitContainers
	updated := assertLaws(t, e, object, func(o *policy.Object) *policy.Object { return o.Updates(old) })
	if prepull.Same(old.Spec.Template.Spec.InitContainers, init) {
		assert.Equal(t, init, updated.Spec.InitContainers, "an update for another reason")
	}
	assert.Equal(t, before, old, "the old object is unchanged")
}

// assertLaws: the input is unchanged; the patch makes of the input's JSON what the rules see; a second pass changes
// nothing; and nothing that a rule could fill is missing afterwards. as makes the request of the object; the Object as
// filled is returned.
func assertLaws(t *testing.T, e *policy.Evaluator, object *policy.Object, as func(*policy.Object) *policy.Object) *policy.Object {
	t.Helper()
	input := rebuild(e, object)
	before, err := json.Marshal(whole(input))
	require.NoError(t, err)

	output := as(rebuild(e, input))
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

	again := as(rebuild(e, output))
	assert.Empty(t, e.Mutate(again), "a second pass changes nothing")
	assert.Equal(t, findings, e.Check(again), "and finds the same")

	for _, f := range findings {
		couldAct := object.Pool != nil && !object.Pool.Fit(object.Spec).Conflict && object.Spec.NodeName == "" && f.Action != config.Off
		if f.Rule.Fills != "" && f.Error.Type == field.ErrorTypeRequired && couldAct {
			assert.Fail(t, "left missing what could be filled", "%s: %v", f.Rule.ID, f.Error)
		}
	}
	return output
}

// assertImages: a placeholder that is created pulls what the templates ask for, with a finding for each that is not known.
// Its manifest, applied again, changes nothing.
func assertImages(t *testing.T, e *policy.Evaluator, input, output *policy.Object) {
	t.Helper()
	sources, ok := output.PrePull()
	if !ok || policy.ImagesHeld(output.Deployment) != "" || !prepull.HasFirst(output.Spec.InitContainers) {
		return
	}
	problems := slices.DeleteFunc(slices.Clone(sources), func(s prepull.Source) bool { return s.Image != "" })
	findings := slices.DeleteFunc(e.Check(output), func(f policy.Finding) bool { return f.Rule.ID != "placeholder-image" })
	for i, f := range findings {
		if assert.Less(t, i, len(problems), "%v", f.Error) {
			assert.Equal(t, problems[i].Problem, strings.TrimPrefix(f.Error.Detail, "not verified: "))
		}
	}
	reapplied := e.Placeholder(input.Deployment, input.Namespace).Updates(output.Deployment)
	e.Mutate(reapplied)
	assert.Equal(t, output.Spec.InitContainers, reapplied.Spec.InitContainers, "applied again")
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
