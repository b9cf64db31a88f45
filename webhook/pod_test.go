package webhook

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"warmpool.sh/test/harness/generate"
	"warmpool.sh/webhook/cluster/manifest"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

// The rules say of the pod that admission reads what they say of all of it: in each of their cases,
// and of random pods.
func TestPodHasWhatRulesRead(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("policy", "testdata", "workspace-*", "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		require.NoError(t, err)
		sections := map[string][]byte{}
		for _, f := range archive.Files {
			sections[f.Name] = f.Data
		}
		for _, name := range []string{"config.yaml", "cluster.yaml"} {
			if sections[name] == nil {
				sections[name], err = os.ReadFile(filepath.Join("policy", "testdata", name))
				require.NoError(t, err)
			}
		}
		cfg, err := config.Load(sections["config.yaml"], policy.IDs())
		require.NoError(t, err)
		facts, _, err := manifest.Read([]string{"-"}, strings.NewReader(string(sections["cluster.yaml"])))
		require.NoError(t, err)
		e, err := policy.New(cfg, facts, time.Unix(0, 0))
		require.NoError(t, err)
		if sections["object.yaml"] != nil {
			var whole corev1.Pod
			require.NoError(t, yaml.UnmarshalStrict(sections["object.yaml"], &whole), file)
			assertSameVerdict(t, e, &whole, file)
		}
		for name, whole := range facts.Pods.All() { // of a case of audits
			assertSameVerdict(t, e, whole, file+" "+name)
		}
	}
	for seed := range uint64(500) {
		r := generate.New(seed)
		e, err := policy.New(r.Config(), r.Snapshot(), time.Unix(0, 0))
		require.NoError(t, err)
		assertSameVerdict(t, e, r.WorkspacePod(), seed)
	}
}

func assertSameVerdict(t *testing.T, e *policy.Evaluator, whole *corev1.Pod, where any) {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": map[string]any{"uid": "u", "object": whole},
	})
	require.NoError(t, err)
	read, err := decodeReview[pod](body)
	require.NoError(t, err, where)
	assert.Equal(t, JudgePod(e, whole, whole.Namespace), JudgePod(e, read.Object.typed(), whole.Namespace), where)
}
