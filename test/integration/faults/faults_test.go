package faults_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/await"
	"warmpool.sh/test/harness/install"
)

// fault is something that fails while pods are created.
type fault struct {
	name string
	// long ones are left out of the short form.
	long bool
	// shows says that some requests fail, because the API server itself has no one to ask or tries no second time.
	shows bool
	// blind says that the NodePools cannot be known meanwhile.
	blind bool
	// cause has it happen, marks when, and waits until it is over; it returns what else is to be told.
	cause func(t *testing.T, c *cluster, l *load) (note string)
}

var embeddedFaults = []fault{
	{name: "Replicas are replaced, one after another", cause: rollAll},
	{name: "The leader is killed (SIGKILL) while another answers", long: true, cause: killLeader},
	{name: "The replica that answers is killed (SIGKILL)", shows: true, cause: killServing},
	{name: "The CA is deleted, another takes its place", long: true, cause: changeCA},
	{name: "`caBundle` is wiped", shows: true, cause: wipeBundle},
	{name: "The configuration is broken, and fixed", cause: breakConfiguration},
	{name: "The CRDs of NodePools and templates are deleted, and come back", long: true, blind: true, cause: removeCRDs},
	{name: "The API server restarts", long: true, cause: restartAPIServer},
}

// Pods are created all the time, and each must be placed (failurePolicy Fail: what warmpool is not asked about is refused),
// while one thing after another fails. Then no one answers, by the policies that ship.
func TestFaults(t *testing.T) {
	c := newCluster(t, "embedded")
	c.failClosed(t)
	var rows []row
	try := func(faults []fault) {
		for _, f := range faults {
			if f.long && !*long {
				continue
			}
			t.Run(f.name, func(t *testing.T) { rows = append(rows, c.try(t, f)) })
		}
	}
	try(embeddedFaults)
	files := c.useFiles(t)
	try(files.faults(*long))
	t.Run("no replica answers", c.testNobody)
	if *update && !t.Failed() {
		writeReport(t, rows)
	}
}

func (c *cluster) try(t *testing.T, f fault) row {
	t.Helper()
	l := c.startLoad(t)
	note := f.cause(t, c, l)
	r := row{fault: f.name, note: note, figures: l.end(t)}
	t.Log(r)
	for _, failure := range r.failures {
		t.Log(failure)
	}
	assert.Zero(t, r.unplaced)
	if !f.shows {
		assert.Zero(t, r.failed)
	}
	if !f.blind {
		assert.Zero(t, l.partly(), "pods without the toleration that the NodePool asks for")
	}
	for _, failure := range r.failures {
		assert.Contains(t, failure, `failed calling webhook "pods.warmpool.sh"`)
	}
	return r
}

func rollAll(t *testing.T, c *cluster, l *load) string {
	times := repetitions(2, 3, 10)
	before := c.service.connections()
	for range times {
		leaving := c.service.serving(t)
		l.mark()
		c.roll(t, leaving)
		l.steady(t)
	}
	assert.Greater(t, c.service.connections(), before, "the API server had to connect anew")
	return fmt.Sprintf("%d times, each time the one that answers", times)
}

func killServing(t *testing.T, c *cluster, l *load) string {
	times := repetitions(2, 4, 20)
	dead := c.service.deadEnds()
	for range times {
		w := c.service.serving(t)
		<-time.After(rand.N(pace)) // in no step with the load
		l.mark()
		require.NoError(t, w.Kill())
		l.steady(t)
		c.forget(w)
		c.start(t)
	}
	return fmt.Sprintf("%d times; %d connections were sent to the one that was dead", times, c.service.deadEnds()-dead)
}

func killLeader(t *testing.T, c *cluster, l *load) string {
	leader := c.leader(t)
	for c.service.serving(t) == leader {
		c.roll(t, leader)
		leader = c.leader(t)
	}
	l.mark()
	killed := time.Now()
	require.NoError(t, leader.Kill())
	c.forget(leader)
	const image = "registry.example/team/notebook:2"
	template := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "workspace.jupyter.org/v1alpha1", "kind": "WorkspaceTemplate"}}
	template.SetNamespace("jupyter-k8s-shared")
	template.SetName("gpu")
	require.NoError(t, c.admin.Patch(t.Context(), template, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"defaultImage":"`+image+`"}}`))))
	await.NoError(t, limit, "the placeholder pulls the new image", func() error {
		d := &appsv1.Deployment{}
		if err := c.admin.Get(t.Context(), client.ObjectKey{Namespace: "overprovisioning", Name: "spaces-placeholder-gpu"}, d); err != nil {
			return err
		}
		if now := d.Spec.Template.Spec.InitContainers[0].Image; now != image {
			return errors.New(now)
		}
		return nil
	})
	after := time.Since(killed)
	c.start(t)
	return fmt.Sprintf("images synced again after %.0f s", after.Seconds())
}

func breakConfiguration(t *testing.T, c *cluster, l *load) string {
	good, err := os.ReadFile(c.replicas[0].ConfigFile)
	require.NoError(t, err)
	l.mark()
	for _, w := range c.replicas {
		require.NoError(t, os.WriteFile(w.ConfigFile, []byte("pools: ["), 0o600))
		await.NoError(t, limit, "the file is refused", func() error {
			text, err := install.Metrics(t.Context(), w.MetricsURL)
			if err == nil && !strings.Contains(text, `warmpool_config_reloads_total{result="refused"} 1`) {
				return errors.New("not refused")
			}
			return err
		})
	}
	l.steady(t)
	l.mark()
	for _, w := range c.replicas {
		require.NoError(t, os.WriteFile(w.ConfigFile, append(good, "# fixed\n"...), 0o600))
	}
	return "the last good one stays in force"
}

// removeCRDs takes all NodePools and templates away. The pool's label and its devices are in the configuration, so pods are
// placed all the same; what only the NodePool declares, its taints, no one knows then.
func removeCRDs(t *testing.T, c *cluster, l *load) string {
	root, err := install.Root()
	require.NoError(t, err)
	crds, err := install.CRDs(root)
	require.NoError(t, err)
	l.mark()
	for _, crd := range crds {
		require.NoError(t, c.admin.Delete(t.Context(), crd.DeepCopy()))
	}
	l.until(t, "the NodePool's taint is not known any more", func(a answer) bool { return a.partly })
	l.steady(t)
	l.mark()
	await.NoError(t, limit, "the CRDs are back", func() error { return c.Apply(t.Context(), crds...) }) // the old ones are still on their way out
	require.NoError(t, c.Apply(t.Context(), c.examples(t, root)...))
	l.until(t, "the NodePool's taint is known again", func(a answer) bool { return a.err == nil && !a.partly })
	return fmt.Sprintf("meanwhile %d pods without the toleration that only the NodePool asks for", l.partly())
}

// restartAPIServer takes longer than client-go's usual deadline of a leader, 10 s.
func restartAPIServer(t *testing.T, c *cluster, l *load) string {
	c.leader(t)    // there is one, and it shall not end
	c.checkLogs(t) // an API server that has just begun forbids what it allows a little later
	l.mark()
	// Without an API server no endpoint changes.
	c.service.freeze(true)
	require.NoError(t, c.RestartAPIServer(t.Context(), 10*time.Second))
	l.steady(t)
	c.service.freeze(false)
	ended := 0
	for _, w := range slices.Clone(c.replicas) {
		if !alive(w) {
			ended++
			c.forget(w)
			c.start(t)
		}
	}
	assert.Zero(t, ended, "replicas that ended")
	return "counted is what it answered"
}

// row is a line of the report.
type row struct {
	fault, note string
	figures
}

func (r row) String() string {
	recovery := "-"
	if r.failed+r.unplaced > 0 {
		recovery = fmt.Sprintf("%.1f", r.recovery.Seconds())
	}
	return fmt.Sprintf("| %s | %d | %d | %d | %.1f | %s | %s |", r.fault, r.requests, r.failed, r.unplaced, r.gap.Seconds(), recovery, r.note)
}
