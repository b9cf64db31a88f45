package webhook

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

// The review's decoder must read an object exactly as the API machinery's does: on every object of the rules' cases, and
// on objects with every field filled.
func TestDecodesLikeTheAPIMachinery(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("policy", "testdata", "*", "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		require.NoError(t, err)
		for _, section := range archive.Files {
			if section.Name != "object.yaml" && section.Name != "old.yaml" {
				continue
			}
			object, err := yaml.YAMLToJSON(section.Data)
			require.NoError(t, err)
			if kjson.UnmarshalCaseSensitivePreserveInts(object, new(corev1.Pod)) != nil {
				continue // YAML that kubectl fixes on its way, such as a bool for a string
			}
			if bytes.Contains(object, []byte(`"kind":"Pod"`)) {
				assertDecodes[pod](t, object, file)
			} else if kjson.UnmarshalCaseSensitivePreserveInts(object, new(appsv1.Deployment)) == nil {
				assertDecodes[appsv1.Deployment](t, object, file)
			}
		}
	}
	filler := randfill.NewWithSeed(1).NilChance(0.2).NumElements(1, 2).MaxDepth(12).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewMilliQuantity(int64(c.Intn(1000000)), resource.DecimalSI)
		},
		func(tm *metav1.Time, c randfill.Continue) { *tm = metav1.Unix(int64(c.Intn(1<<31)), 0) },
		func(f *metav1.FieldsV1, _ randfill.Continue) { f.SetRawString(`{"f:a":{}}`) },
	)
	for range 50 {
		var random corev1.Pod
		filler.Fill(&random)
		object, err := json.Marshal(random)
		require.NoError(t, err)
		assertDecodes[pod](t, object, "random pod")
	}
}

// What is answered reads as what the API machinery writes, also of what is written without reflection.
func TestAnswersLikeTheAPIMachinery(t *testing.T) {
	patchType := admissionv1.PatchTypeJSONPatch
	for _, response := range []admissionv1.AdmissionResponse{
		{UID: "7d8a2c57-0f6e-4c53-9a35-2c1b7f0a9d11", Allowed: true},
		{UID: "\"<\\\n\u2028é", Allowed: true},
		{UID: "u", Allowed: true, Patch: []byte(`[{"op":"add"}]`), PatchType: &patchType},
		{UID: "u", Allowed: true, Warnings: []string{"a <b> & \"c\""}},
		{UID: "u", Result: Denial(schema.GroupKind{Kind: "Pod"}, "name", []policy.Finding{{
			Rule: policy.Rules()[0], Action: config.Deny, Error: field.Required(field.NewPath("spec"), "not there"),
		}})},
	} {
		want, err := json.Marshal(admissionv1.AdmissionReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Response: &response,
		})
		require.NoError(t, err)
		var wrote bytes.Buffer
		require.NoError(t, answer(&wrote, &response))
		var got, read admissionv1.AdmissionReview
		require.NoError(t, kjson.UnmarshalCaseSensitivePreserveInts(wrote.Bytes(), &got), wrote.String())
		require.NoError(t, kjson.UnmarshalCaseSensitivePreserveInts(want, &read))
		assert.Equal(t, read, got, wrote.String())
	}
}

func assertDecodes[T any](t *testing.T, object []byte, where string) {
	t.Helper()
	var want T
	require.NoError(t, kjson.UnmarshalCaseSensitivePreserveInts(object, &want), where)
	body, err := json.Marshal(map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"request": map[string]any{"uid": "u", "object": json.RawMessage(object)},
	})
	require.NoError(t, err)
	request := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	got, err := readReview[T](httptest.NewRecorder(), request, &share{limiter: newLimiter()})
	require.NoError(t, err, "%s: %s", where, object)
	wantJSON, err := json.Marshal(want)
	require.NoError(t, err)
	gotJSON, err := json.Marshal(got.Object)
	require.NoError(t, err)
	assert.JSONEq(t, string(wantJSON), string(gotJSON), where)
}
