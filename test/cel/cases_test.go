package cel_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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

const testdata = "../../webhook/policy/testdata"

// TestCases gives the Workspace pods of all cases of the rules to the policy.
func TestCases(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testdata, "workspace-*", "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var worlds []*world
	bodies := map[*world][]byte{}
	names := map[*world]string{}
	for i, file := range files {
		w, body := readCase(t, fmt.Sprintf("case-%d", i), file)
		if w != nil {
			worlds = append(worlds, w)
			bodies[w], names[w] = body, strings.TrimPrefix(file, testdata+"/")
		}
	}
	install(t, worlds...)
	changed, refused := 0, 0
	for _, w := range worlds {
		t.Run(names[w], func(t *testing.T) {
			result := w.try(t, bodies[w])
			switch {
			case result.refused != "":
				refused++
				t.Log("no pod: ", result.refused)
			case result.fault != "":
				assert.Fail(t, result.fault, "%s", w.explain(t, bodies[w]))
			case result.changed:
				changed++
			}
		})
	}
	t.Logf("%d cases: %d changed, %d that no API server admits", len(worlds), changed, refused)
	assert.Greater(t, changed, len(worlds)/4)
	assert.LessOrEqual(t, refused, 1, "the pod without containers")
}

// readCase gives the world and the pod of a case; none where it is about something else.
func readCase(t *testing.T, namespace, file string) (*world, []byte) {
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
		return nil, nil
	}
	cfg, err := config.Load(sections["config.yaml"], policy.IDs())
	require.NoError(t, err)
	facts, _, err := manifest.Read([]string{"-"}, strings.NewReader(string(sections["cluster.yaml"])))
	require.NoError(t, err)
	var pod corev1.Pod
	require.NoError(t, yaml.UnmarshalStrict(sections["object.yaml"], &pod))
	for i := range cfg.Exemptions {
		if cfg.Exemptions[i].Namespace == pod.Namespace {
			cfg.Exemptions[i].Namespace = namespace
		}
	}
	w := newWorld(t, namespace, cfg, facts)
	if !w.evaluator.IsWorkspace(pod.Labels) {
		return nil, nil
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
	return w, body
}
