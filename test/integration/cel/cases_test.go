package cel_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"warmpool.sh/webhook/cluster/manifest"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
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
	archive, err := txtar.ParseFile(file)
	require.NoError(t, err)
	sections := map[string][]byte{}
	for _, f := range archive.Files {
		sections[f.Name] = f.Data
	}
	for _, name := range []string{"config.yaml", "cluster.yaml"} {
		if _, ok := sections[name]; !ok {
			sections[name], err = os.ReadFile(filepath.Join(testdata, name))
			require.NoError(t, err)
		}
	}
	if sections["object.yaml"] == nil {
		return nil
	}
	cfg, err := config.Load(sections["config.yaml"], policy.IDs())
	require.NoError(t, err)
	if slices.ContainsFunc(cfg.Pools, func(p config.Pool) bool { return p.NamespaceSelector != nil }) {
		return nil // the policy does not know it, and export says so
	}
	facts, _, err := manifest.Read([]string{"-"}, strings.NewReader(string(sections["cluster.yaml"])))
	require.NoError(t, err)
	var pod corev1.Pod
	require.NoError(t, yaml.UnmarshalStrict(sections["object.yaml"], &pod))
	key := fmt.Sprintf("%s\n%s\n%s", pod.Namespace, sections["config.yaml"], sections["cluster.yaml"])
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
