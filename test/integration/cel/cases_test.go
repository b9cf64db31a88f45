package cel_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"warmpool.sh/test/harness/rulecases"
	"warmpool.sh/webhook/config"
)

const testdata = "../../../webhook/policy/testdata"

// TestCases gives the Workspace pods of all cases of the rules to the policy.
func TestCases(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testdata, "workspace-*", "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	worlds := map[string]*world{}
	var cases []*testCase
	for _, file := range files {
		if c := readCase(t, file, worlds); c != nil {
			cases = append(cases, c)
		}
	}
	install(t, slices.Collect(maps.Values(worlds))...)
	changed, refused := 0, 0
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			result := c.world.try(t, c.body)
			switch {
			case result.refused != "":
				refused++
				t.Log("no pod: ", result.refused)
			case result.fault != "":
				assert.Fail(t, result.fault, "%s", c.world.explain(t, c.body))
			case result.changed:
				changed++
			}
		})
	}
	t.Logf("%d cases: %d changed, %d that no API server admits", len(cases), changed, refused)
	assert.Greater(t, changed, len(cases)/4)
	assert.LessOrEqual(t, refused, 1, "the pod without containers")
}

type testCase struct {
	name  string
	world *world
	body  []byte // of the pod
}

// readCase reads a case into one of the worlds, which is new where none has its configuration and cluster; nil where it is
// about something else.
func readCase(t *testing.T, file string, worlds map[string]*world) *testCase {
	t.Helper()
	c := rulecases.Read(t, file)
	if !c.Own["object.yaml"] {
		return nil
	}
	cfg, facts := c.Config, c.Facts(t)
	if slices.ContainsFunc(cfg.Pools, func(p config.Pool) bool { return p.NamespaceSelector != nil }) {
		return nil // the policy does not know it, and export says so
	}
	var pod corev1.Pod
	require.NoError(t, yaml.UnmarshalStrict([]byte(c.Sections["object.yaml"]), &pod))
	key := fmt.Sprintf("%s\n%s\n%s", pod.Namespace, c.Sections["config.yaml"], c.Sections["cluster.yaml"])
	namespace := fmt.Sprintf("case-%d", len(worlds))
	for i := range cfg.Exemptions {
		if cfg.Exemptions[i].Namespace == pod.Namespace {
			cfg.Exemptions[i].Namespace = namespace
		}
	}
	w := newWorld(t, namespace, cfg, facts)
	if !w.evaluator.IsWorkspace(pod.Labels) {
		return nil
	}
	if worlds[key] == nil {
		worlds[key] = w
	}
	// What placement does not look at, and the API server looks up.
	pod.Namespace, pod.Spec.PriorityClassName, pod.Spec.Priority, pod.Spec.PreemptionPolicy = "", "", nil, nil
	pod.Spec.RuntimeClassName, pod.Spec.Overhead = nil, nil
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == "" {
			pod.Spec.Containers[i].Name = "c"
		}
	}
	body, err := json.Marshal(pod)
	require.NoError(t, err)
	return &testCase{strings.TrimPrefix(file, testdata+"/"), worlds[key], body}
}
