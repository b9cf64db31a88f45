package audits

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"warmpool.sh/webhook/audit"
	"warmpool.sh/webhook/policy"
)

func objectAt(t *testing.T, seconds int64, findings ...audit.Finding) *unstructured.Unstructured {
	t.Helper()
	report := reportOf(findings...)
	report.Time = time.Unix(seconds, 0)
	wanted, err := objectsOf(report)
	require.NoError(t, err)
	assert.Empty(t, wanted[false], "nothing is found about the cluster")
	return wanted[true]["warm"]
}

// stored is an object as the API server gives it back.
func stored(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	text, err := json.Marshal(object)
	require.NoError(t, err)
	back := &unstructured.Unstructured{}
	require.NoError(t, back.UnmarshalJSON(text))
	back.SetUID("1")
	back.SetLabels(map[string]string{audit.ManagedByLabel: audit.ReportName, "others": "label"})
	return back
}

func TestReportsAreWrittenOnlyWhenTheyDiffer(t *testing.T) {
	a, b := finding(policy.SeverityError, "Deployment", "a", "3 of 5"), finding(policy.SeverityWarning, "Deployment", "b", "wrong")
	have := stored(t, objectAt(t, 100, a))
	same100 := objectAt(t, 200, a)
	keepTimes(same100, have)
	assert.True(t, same(same100, have), "only the time of the audit is another one")

	a.Message = "4 of 5"
	more := objectAt(t, 300, a, b)
	keepTimes(more, have)
	assert.False(t, same(more, have))
	results := resultsOf(more)
	require.Len(t, results, 2)
	assert.Equal(t, map[string]any{"seconds": int64(100), "nanos": int64(0)}, results[0]["timestamp"], "since when it is found")
	assert.Equal(t, map[string]any{"seconds": int64(300), "nanos": int64(0)}, results[1]["timestamp"])

	unlabelled := have.DeepCopy()
	unlabelled.SetLabels(nil)
	assert.False(t, same(same100, unlabelled))
}

// PolicyReports have no source of their own, and a server-side apply with a field that is not in the schema is refused.
func TestObjectsOfTheOtherAPI(t *testing.T) {
	object := objectAt(t, 100, finding(policy.SeverityError, "Deployment", "a", "wrong"))
	assert.Equal(t, "warmpool", object.Object["source"])
	s := sync{kind: reportAPIs[1].WithKind(reportAPIs[1].namespaced)}
	got := s.of(object)
	assert.Equal(t, "wgpolicyk8s.io/v1alpha2", got.GetAPIVersion())
	assert.Equal(t, "PolicyReport", got.GetKind())
	assert.NotContains(t, got.Object, "source")
	assert.Equal(t, "warmpool", resultsOf(got)[0]["source"])
}
