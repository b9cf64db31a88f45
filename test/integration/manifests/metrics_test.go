package manifests_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
)

const limit = time.Minute

// query is what test/harness/monitoring tells of a PromQL expression.
type query struct {
	Place, Expression string
	Metrics           map[string][]string
	Grouping, Texts   []string
}

// series has the labels of each metric.
type series map[string]map[string]bool

// What Prometheus itself and kube-state-metrics tell, and the labels that a scrape adds.
var (
	others = series{"up": {}, "kube_deployment_status_replicas_available": {"namespace": true, "deployment": true}}
	target = map[string]bool{"job": true, "pod": true}
)

// Every metric and label that the alerts and the dashboard name exists in what a running warmpool and the API server tell,
// after everything that they count has happened once.
func metricsExist(t *testing.T, cp *controlplane.ControlPlane, root, binary string) {
	t.Helper()
	_, rendered := render(t, kustomizations(t)["components/monitoring"])
	var component strings.Builder
	for _, object := range rendered {
		content, err := object.MarshalJSON()
		require.NoError(t, err)
		component.WriteString("---\n" + string(content) + "\n")
	}
	queries := queriesOf(t, root, component.String())
	require.Greater(t, len(queries), 15)
	warmpool := provoke(t, cp, root, binary)

	admin, err := client.New(cp.Config, client.Options{})
	require.NoError(t, err)

	var missing []string
	require.Eventually(t, func() bool { // some are told only when the leader has looked around
		workspace(t, admin) // those that started before it led are not counted
		known := series{}
		known.read(t, http.DefaultClient, warmpool.MetricsURL)
		api, err := rest.HTTPClientFor(cp.Config)
		require.NoError(t, err)
		known.read(t, api, cp.Config.Host+"/metrics")
		missing = nil
		for _, q := range queries {
			missing = append(missing, known.lacks(q)...)
		}
		return len(missing) == 0
	}, 2*limit, time.Second, "named by alerts or dashboard, and nowhere told: %s", &missing)
}

func queriesOf(t *testing.T, root, manifests string) []query {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "-C", filepath.Join(root, "test", "harness", "monitoring"), "run", ".")
	cmd.Stdin = strings.NewReader(manifests)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	require.NoError(t, err, complaints.String())
	var queries []query
	require.NoError(t, json.Unmarshal(out, &queries))
	return queries
}

// provoke has a warmpool do, and fail to do, what is counted.
func provoke(t *testing.T, cp *controlplane.ControlPlane, root, binary string) *install.Warmpool {
	t.Helper()
	for _, name := range []string{"cluster.yaml", "templates.yaml"} {
		_, _, err := cp.Kubectl(t.Context(), "", "apply", "-f", filepath.Join(root, "manifests", "examples", "fine", name))
		require.NoError(t, err)
	}
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {generateName: notebook-, namespace: team-b, labels: {workspace.jupyter.org/workspace-name: notebook}}\n" +
		"spec: {automountServiceAccountToken: false, containers: [{name: workspace, image: registry.example/notebook:1}]}\n"
	broken := filepath.Join(root, "manifests", "try", "placeholder-broken.yaml")
	send := func() (refused error) {
		_, _, err := cp.Kubectl(t.Context(), pod, "create", "-f", "-")
		require.NoError(t, err)
		_, _, refused = cp.Kubectl(t.Context(), "", "create", "-n", "overprovisioning", "-f", broken)
		return refused
	}
	warmpool, err := install.Up(t.Context(), cp, install.Options{WithoutCRDs: true})
	require.NoError(t, err)
	require.ErrorContains(t, send(), "placeholder-anti-affinity")
	require.NoError(t, warmpool.Kill())
	require.ErrorContains(t, send(), "failed calling webhook") // counted by the API server

	shipped, err := install.Render(filepath.Join(root, "manifests", "overlays", "embedded"))
	require.NoError(t, err)
	warmpool, err = install.Start(t.Context(), cp, binary, shipped, warmpool.WebhookPort)
	require.NoError(t, err)
	require.ErrorContains(t, send(), "placeholder-anti-affinity")
	configuration, err := os.ReadFile(warmpool.ConfigFile)
	require.NoError(t, err)
	sized := bytes.Replace(configuration, []byte("  sizing:\n"), []byte("  size: {mode: Recommend}\n  sizing:\n"), 1)
	require.NotEqual(t, configuration, sized)
	require.NoError(t, os.WriteFile(warmpool.ConfigFile, sized, 0o600))
	require.Eventually(t, func() bool {
		applied, _, err := install.Metric(t.Context(), warmpool.MetricsURL, "warmpool_config_reloads_total", `result="applied"`)
		return err == nil && applied > 1
	}, limit, time.Second)
	require.NoError(t, os.WriteFile(warmpool.ConfigFile, append([]byte("mistake: true\n"), sized...), 0o600))
	return warmpool
}

// workspace starts one, as a scheduler and a kubelet tell it.
func workspace(t *testing.T, admin client.Client) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", GenerateName: "notebook-", Labels: map[string]string{"workspace.jupyter.org/workspace-name": "notebook"}},
		Spec: corev1.PodSpec{
			NodeName: "a", AutomountServiceAccountToken: new(bool),
			Containers: []corev1.Container{{Name: "workspace", Image: "registry.example/notebook:1"}},
		},
	}
	require.NoError(t, admin.Create(t.Context(), pod))
	pod.Status = corev1.PodStatus{
		Phase:      corev1.PodRunning,
		Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "workspace", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
		}},
	}
	require.NoError(t, admin.Status().Update(t.Context(), pod))
}

// read adds the metrics of a page.
func (s series) read(t *testing.T, from *http.Client, url string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := from.Do(request)
	require.NoError(t, err)
	defer response.Body.Close() //nolint:errcheck // only read from
	require.Equal(t, http.StatusOK, response.StatusCode)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	require.NoError(t, err)
	for name, family := range families {
		labels := map[string]bool{}
		for _, metric := range family.Metric {
			for _, pair := range metric.Label {
				labels[pair.GetName()] = true
			}
		}
		s[name] = labels
		if family.GetType() == dto.MetricType_HISTOGRAM {
			buckets := maps.Clone(labels)
			buckets["le"] = true
			s[name+"_bucket"] = buckets
		}
	}
}

var named = regexp.MustCompile(`\$labels\.(\w+)|\{\{ *(\w+) *\}\}`)

// lacks reports what a query names and no one tells.
func (s series) lacks(q query) []string {
	var missing []string
	labels := maps.Clone(target)
	for metric, selected := range q.Metrics {
		has, ok := s[metric]
		if !ok {
			has, ok = others[metric]
		}
		if !ok {
			missing = append(missing, q.Place+": metric "+metric)
		}
		for _, label := range selected {
			if !has[label] && !target[label] {
				missing = append(missing, q.Place+": label "+label+" of "+metric)
			}
		}
		maps.Copy(labels, has)
	}
	wanted := slices.Clone(q.Grouping)
	for _, text := range q.Texts {
		for _, match := range named.FindAllStringSubmatch(text, -1) {
			wanted = append(wanted, match[1]+match[2])
		}
	}
	for _, label := range wanted {
		if !labels[label] {
			missing = append(missing, q.Place+": label "+label)
		}
	}
	return missing
}
