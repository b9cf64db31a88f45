package deploy_test

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"warmpool.sh/test/harness/chart"
	"warmpool.sh/test/harness/install"
)

// load creates pods, one after another, until it is stopped.
type load struct {
	created, failed, unplaced atomic.Int64
	failure                   atomic.Value
	stop                      func()
}

func newLoad(t *testing.T) *load {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", cp.Kubeconfig)
	require.NoError(t, err)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	l, done := &load{}, make(chan struct{})
	l.stop = func() { cancel(); <-done }
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			l.create(client)
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return l
}

func (l *load) create(client kubernetes.Interface) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "notebook-", Labels: map[string]string{"workspace.jupyter.org/workspace-name": "notebook"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "workspace", Image: "registry.example/notebook:1"}}},
	}
	made, err := client.CoreV1().Pods("team-b").Create(context.Background(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case err != nil:
		l.failed.Add(1)
		l.failure.Store(err.Error())
	case made.Spec.Affinity == nil || made.Spec.Affinity.NodeAffinity == nil:
		l.unplaced.Add(1)
	}
	l.created.Add(1)
}

// Upgrades and rollbacks of the release, which change pools and webhooks, lose no pod; what is denied while warmpool has not
// read the new configuration yet is tried again until it has.
func TestChartUpgradeUnderLoad(t *testing.T) {
	for _, version := range chart.Helms {
		t.Run(version, func(t *testing.T) {
			r := newRelease(t, version)
			around(t)
			values := r.initialize(t)
			r.must(t, "install", "warmpool", r.dir, "-f", r.values)
			process, err := install.Start(t.Context(), cp, binary, r.rendered(t), r.port)
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				ok, err := placed(t.Context(), "first")
				_, _, _ = cp.Kubectl(t.Context(), "", "delete", "pod", "-n", "team-b", "first", "--grace-period=0", "--force")
				return err == nil && ok
			}, limit, step)

			l := newLoad(t)
			for _, change := range []func(string) string{
				func(s string) string { return strings.Replace(s, "max: 4", "max: 3", 1) },
				func(s string) string { return s + "\nnetworkPolicy: true\nrules: {workspace-size: Audit}\n" },
				func(s string) string { return strings.Replace(s, "pools:", "auditInterval: 20m\npools:", 1) },
			} {
				require.NotEqual(t, values, change(values))
				require.NoError(t, os.WriteFile(r.values, []byte(change(values)), 0o600))
				r.must(t, "upgrade", "warmpool", r.dir, "-f", r.values)
			}
			r.must(t, "rollback", "warmpool", "1")

			// A pool is added: the webhook asks Helm to come again until the kubelet has brought the configuration that has it.
			more := strings.Replace(values, "- name: gpu\n", "- name: more\n  nodeLabel: {key: example.com/pool, values: [more]}\n  placeholders: [{requests: {cpu: 1, memory: 1Gi}, replicas: 0}]\n- name: gpu\n", 1)
			require.NotEqual(t, values, more)
			require.NoError(t, os.WriteFile(r.values, []byte(more), 0o600))
			time.AfterFunc(5*time.Second, func() {
				configuration, _, err := cp.Kubectl(context.Background(), "", "get", "configmap", "-n", install.Namespace, "warmpool-config", "-o", `jsonpath={.data.warmpool\.yaml}`)
				if assert.NoError(t, err) {
					assert.NoError(t, os.WriteFile(process.ConfigFile, []byte(configuration), 0o600))
				}
			})
			r.must(t, "upgrade", "warmpool", r.dir, "-f", r.values)
			cluster(t, "get", "deployment", "-n", "overprovisioning", "spaces-placeholder-more") // fails if it is not there
			l.stop()
			t.Logf("%d pods, %d failed, %d unplaced", l.created.Load(), l.failed.Load(), l.unplaced.Load())
			assert.Greater(t, l.created.Load(), int64(50))
			assert.Zero(t, l.failed.Load(), l.failure.Load())
			assert.Zero(t, l.unplaced.Load())

			r.must(t, "uninstall", "warmpool", "--wait")
			_ = process.Kill() // without its Lease it may have ended by itself
			waitGone(t)
		})
	}
}

func waitGone(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		return cluster(t, "get", "namespace", "--ignore-not-found", "-o", "name", install.Namespace, "overprovisioning") == ""
	}, limit, step)
}

// From make deploy to the chart, and back: Helm takes the objects over as they are, and what is left of Helm is a Secret.
func TestChartTakesOver(t *testing.T) {
	for _, version := range chart.Helms {
		t.Run(version, func(t *testing.T) {
			around(t)
			before := inventory(t)
			dir, shipped, port := overlay(t, "embedded")
			deploy(t, dir)
			process, err := install.Start(t.Context(), cp, binary, shipped, port)
			require.NoError(t, err)
			settled(t)
			first := running(t)

			r := newRelease(t, version)
			r.repeat(t, port)
			values := r.initialize(t)
			assert.Contains(t, values, "--take-ownership")
			command := []string{"install", "warmpool", r.dir, "-f", r.values, "--take-ownership"}
			if version != "v3" {
				command = append(command, "--force-conflicts") // kubectl applied them
			}
			r.must(t, command...)
			assert.Equal(t, first, running(t), "nothing that runs is replaced")

			deploy(t, dir)
			cluster(t, "delete", "secret", "-l", "owner=helm,name=warmpool")
			assert.Equal(t, first, running(t))
			undeploy(t, dir)
			_ = process.Kill() // without its Lease it may have ended by itself
			assert.Equal(t, before, inventory(t))
		})
	}
}

// settled waits until the controllers have made the pods of both placeholders.
func settled(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		return strings.Count(cluster(t, "get", "pods", "-n", "overprovisioning", "-o", "name"), "pod/") >= 4
	}, limit, step)
}

// running names the pods that there are, and what made them.
func running(t *testing.T) string {
	t.Helper()
	return cluster(t, "get", "replicasets,pods", "-n", "overprovisioning", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid}{"\n"}{end}`) +
		cluster(t, "get", "replicasets", "-n", install.Namespace, "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.uid}{"\n"}{end}`)
}

// repeat has the webhooks call another port.
func (r *release) repeat(t *testing.T, port int) {
	t.Helper()
	for _, file := range []string{"warmpool.yaml", "placement-webhook.yaml"} {
		r.edit(t, file, func(text string) string {
			return strings.ReplaceAll(text, portLine(r.port), portLine(port))
		})
	}
	r.port = port
}
