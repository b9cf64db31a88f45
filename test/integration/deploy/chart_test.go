package deploy_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"warmpool.sh/test/harness/chart"
	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
)

// release is the chart, with the values of a file, for a warmpool that runs as a process here and serves on the port.
type release struct {
	helm, dir, values string
	port              int
}

// newRelease copies the chart. As install.Localize does, the copy has the Service lead to this machine.
func newRelease(t *testing.T, version string) *release {
	t.Helper()
	helm, err := chart.Helm(t.Context(), root, version)
	require.NoError(t, err)
	port, err := controlplane.FreePort()
	require.NoError(t, err)
	r := &release{helm: helm, dir: filepath.Join(t.TempDir(), "chart"), values: filepath.Join(t.TempDir(), "values.yaml"), port: port}
	require.NoError(t, os.CopyFS(r.dir, os.DirFS(filepath.Join(root, "manifests", "chart"))))
	service := regexp.MustCompile(`(?s)(\n  name: warmpool-webhook\n  namespace: [^\n]*\nspec:\n).*?\n---`)
	r.edit(t, "warmpool.yaml", func(text string) string {
		return service.ReplaceAllString(text, "${1}  type: ExternalName\n  externalName: localhost\n---")
	})
	for _, file := range []string{"warmpool.yaml", "placement-webhook.yaml"} {
		r.edit(t, file, func(text string) string {
			return strings.ReplaceAll(text, portLine(443), portLine(port))
		})
	}
	return r
}

func portLine(port int) string { return fmt.Sprintf("\n      port: %d\n", port) }

func (r *release) edit(t *testing.T, file string, change func(string) string) {
	t.Helper()
	path := filepath.Join(r.dir, "templates", "generated", file)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	changed := change(string(text))
	require.NotEqual(t, string(text), changed, file)
	require.NoError(t, os.WriteFile(path, []byte(changed), 0o600))
}

// run runs Helm as a user would, and returns what it printed.
func (r *release) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, r.helm, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cp.Kubeconfig, "HELM_CACHE_HOME="+filepath.Join(cp.Dir, "helm"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("helm %s: %w\n%s", strings.Join(args, " "), err, &out)
	}
	return out.String(), nil
}

func (r *release) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := r.run(t.Context(), args...)
	require.NoError(t, err)
	return out
}

// rendered are the release's objects, as Helm has them from the chart.
func (r *release) rendered(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), r.helm, "template", "warmpool", r.dir, "--skip-tests", "--kube-version", "1.37.0", "-f", r.values)
	out, err := cmd.Output()
	require.NoError(t, err)
	objects, err := controlplane.Decode(bytes.NewReader(out))
	require.NoError(t, err)
	return objects
}

// around is what a cluster has before warmpool comes: NodePools, templates, and a node for each pool.
func around(t *testing.T) {
	t.Helper()
	for _, name := range []string{"cluster.yaml", "nodepools.yaml", "templates.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, "manifests", "examples", "fine", name))
		require.NoError(t, err)
		objects, err := controlplane.Decode(bytes.NewReader(text))
		require.NoError(t, err)
		for _, object := range objects {
			ours := object.GetName() == "overprovisioning" || object.GetName() == "warmpool-system" || object.GetKind() == "PriorityClass"
			if !ours && object.GetKind() != "HyperpodNodeClass" {
				require.NoError(t, cp.Apply(t.Context(), object))
			}
		}
	}
	t.Cleanup(func() {
		_, _, err := cp.Kubectl(context.Background(), "", "delete", "nodepools,workspacetemplates", "-A", "--all")
		assert.NoError(t, err)
		_, _, err = cp.Kubectl(context.Background(), "", "delete", "namespace", "jupyter-k8s-shared", "aws-hyperpod", "team-a", "team-b")
		assert.NoError(t, err)
	})
	require.Eventually(t, func() bool { // the controllers fill new namespaces a moment later
		out, _, err := cp.Kubectl(t.Context(), "", "get", "-n", "team-b", "configmap/kube-root-ca.crt", "serviceaccount/default")
		return err == nil && out != ""
	}, limit, step)
}

// initialize writes the values that warmpool init prints for the cluster.
func (r *release) initialize(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "init", "--kubeconfig", cp.Kubeconfig, "--image", image)
	out, err := cmd.Output()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(r.values, out, 0o600))
	return string(out)
}

// placed creates a Workspace pod and tells whether it was given its pool.
func placed(ctx context.Context, name string) (bool, error) {
	text := strings.ReplaceAll(strings.ReplaceAll(workspace, "notebook\n", name+"\n"), "namespace: team", "namespace: team-b")
	pod, _, err := cp.Kubectl(ctx, text, "create", "-f", "-", "-o", "jsonpath={.spec.affinity.nodeAffinity}")
	return strings.Contains(pod, "spaces-cpu"), err
}

func TestChart(t *testing.T) {
	for _, version := range chart.Helms {
		t.Run(version, func(t *testing.T) {
			r := newRelease(t, version)
			around(t)
			before := inventory(t)

			began := time.Now()
			values := r.initialize(t)
			assert.NotContains(t, values, "take-ownership")
			t.Log(r.must(t, "install", "warmpool", r.dir, "-f", r.values))
			process, err := install.Start(t.Context(), cp, binary, r.rendered(t), r.port)
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				ok, err := placed(t.Context(), fmt.Sprintf("notebook-%d", time.Now().UnixNano()))
				return err == nil && ok
			}, limit, step)
			t.Logf("from init to the first placed pod: %s", time.Since(began).Round(time.Millisecond))
			assert.Less(t, time.Since(began), time.Minute)
			cluster(t, "delete", "pods", "-n", "team-b", "--all", "--grace-period=0", "--force")

			first := r.versions(t)
			t.Log(r.must(t, "upgrade", "warmpool", r.dir, "-f", r.values))
			assert.Equal(t, first, r.versions(t), "the second time nothing changes")
			r.test(t)

			r.must(t, "uninstall", "warmpool", "--wait")
			_ = process.Kill() // without its Lease it may have ended by itself
			require.Eventually(t, func() bool { return assert.ObjectsAreEqual(before, inventory(t)) }, limit, step)
			assert.Equal(t, before, inventory(t), "nothing is left, and the others' objects are the same")
		})
	}
}

// versions tells of each object of the release how often its specification was written.
func (r *release) versions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, object := range r.rendered(t) {
		args := []string{"get", strings.ToLower(object.GetKind()) + "/" + object.GetName(), "-o", "jsonpath={.metadata.uid} {.spec}"}
		if object.GetNamespace() != "" {
			args = append(args, "-n", object.GetNamespace())
		}
		found[object.GetKind()+" "+object.GetName()] = cluster(t, args...)
	}
	return found
}

// test runs helm test, with this test as the kubelet: it runs what the pods are to run, by their rights.
func (r *release) test(t *testing.T) {
	t.Helper()
	type ended struct {
		out string
		err error
	}
	tested := make(chan ended, 1)
	go func() {
		out, err := r.run(t.Context(), "test", "warmpool", "--timeout", "2m")
		tested <- ended{out, err}
	}()
	done := map[string]bool{}
	require.Eventually(t, func() bool {
		select {
		case e := <-tested:
			require.NoError(t, e.err, e.out)
			return true
		default:
		}
		out, _, err := cp.Kubectl(t.Context(), "", "get", "pods", "-n", "overprovisioning", "-o", "jsonpath={range .items[*]}{.metadata.name} {.status.phase}{\"\\n\"}{end}")
		if err != nil {
			return false
		}
		for line := range strings.Lines(out) {
			name, phase, _ := strings.Cut(strings.TrimSpace(line), " ")
			if strings.HasPrefix(name, "warmpool-test-") && !done[name] && corev1.PodPhase(phase) != corev1.PodSucceeded {
				r.judge(t, name)
				done[name] = true
			}
		}
		return false
	}, 2*limit, step)
	assert.Len(t, done, 3)
}

// judge runs the command of a pod that helm test made.
func (r *release) judge(t *testing.T, pod string) {
	t.Helper()
	kubeconfig, err := cp.ServiceAccountKubeconfig(t.Context(), "overprovisioning", "warmpool-test")
	require.NoError(t, err)
	config := filepath.Join(t.TempDir(), "warmpool.yaml")
	require.NoError(t, os.WriteFile(config, []byte(cluster(t, "get", "configmap", "-n", "overprovisioning", "warmpool-test", "-o", `jsonpath={.data.warmpool\.yaml}`)), 0o600))
	args := strings.Fields(cluster(t, "get", "pod", "-n", "overprovisioning", pod, "-o", "jsonpath={.spec.containers[0].args[*]}"))
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "/etc/warmpool/warmpool.yaml", config)
	}
	cmd := exec.CommandContext(t.Context(), binary, append(args, "--kubeconfig", kubeconfig)...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	cluster(t, "patch", "pod", "-n", "overprovisioning", pod, "--subresource=status", "--type=merge", "-p", `{"status": {"phase": "Succeeded"}}`)
}
