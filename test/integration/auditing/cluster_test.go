package auditing_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/await"
	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
)

const (
	limit = 90 * time.Second // for anything that is waited for
	user  = "system:serviceaccount:warmpool-system:warmpool"
)

// auditPolicy notes what warmpool asks for, but for what goes on all the time: watches, and the lease.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- {level: None, verbs: [watch]}
- {level: None, resources: [{group: coordination.k8s.io}]}
- {level: Metadata, users: [` + user + `]}
- {level: None}
`

// cluster is an API server with warmpool.
type cluster struct {
	*controlplane.ControlPlane
	admin    client.Client
	warmpool *install.Warmpool // that leads
}

// decode reads a file of YAML documents.
func decode(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	objects, err := controlplane.Decode(bytes.NewReader(text))
	require.NoError(t, err)
	return objects
}

// openReports are the CRDs that come with the module of the types.
func openReports(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/openreports/reports-api").Output()
	require.NoError(t, err)
	var crds []*unstructured.Unstructured
	for _, name := range []string{"reports", "clusterreports"} {
		crds = append(crds, decode(t, filepath.Join(strings.TrimSpace(string(dir)), "config", "crd", "openreports.io_"+name+".yaml"))...)
	}
	return crds
}

// metric is the sum of the leader's samples whose labels contain all parts; found reports whether there is one.
func (c *cluster) metric(t *testing.T, name string, parts ...string) (sum float64, found bool) {
	t.Helper()
	sum, found, err := install.Metric(t.Context(), c.warmpool.MetricsURL, name, parts...)
	require.NoError(t, err)
	return sum, found
}

// audited waits for some more audits that succeed.
func (c *cluster) audited(t *testing.T, more float64) {
	t.Helper()
	before, _ := c.metric(t, "warmpool_audits_total", `result="success"`)
	await.NoProblem(t, limit, "another audit", func() string {
		now, _ := c.metric(t, "warmpool_audits_total", `result="success"`)
		if now < before+more {
			return fmt.Sprintf("%v audits, before: %v", now, before)
		}
		return ""
	})
}

// events are warmpool's with the reason.
func (c *cluster) events(t *testing.T, reason string) []eventsv1.Event {
	t.Helper()
	var list eventsv1.EventList
	require.NoError(t, c.admin.List(t.Context(), &list))
	var found []eventsv1.Event
	for _, e := range list.Items {
		if e.ReportingController == "warmpool" && e.Reason == reason {
			found = append(found, e)
		}
	}
	return found
}

// report is an object called warmpool; nil: there is none.
func (c *cluster) report(t *testing.T, kind schema.GroupVersionKind, namespace string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	if err := c.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "warmpool"}, object); err != nil {
		return nil
	}
	return object
}

// rulesIn are the rules of the results, each once for each result.
func rulesIn(report *unstructured.Unstructured) string {
	if report == nil {
		return ""
	}
	results, _, _ := unstructured.NestedSlice(report.Object, "results")
	var rules []string
	for _, result := range results {
		if fields, ok := result.(map[string]any); ok {
			rules = append(rules, fmt.Sprint(fields["rule"]))
		}
	}
	return strings.Join(rules, " ")
}

// request is one that warmpool made.
type request struct {
	Verb       string
	RequestURI string
	Status     struct{ Code int } `json:"-"`
}

// requests are those that warmpool made so far.
func (c *cluster) requests(t *testing.T) []request {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(c.Dir, "audit.log"))
	require.NoError(t, err)
	var found []request
	for line := range bytes.Lines(log) {
		var r struct {
			request
			ResponseStatus struct{ Code int } `json:"responseStatus"`
		}
		if json.Unmarshal(line, &r) == nil {
			r.Status.Code = r.ResponseStatus.Code
			found = append(found, r.request)
		}
	}
	return found
}
