package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/test/harness/needs"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	os.Exit(m.Run())
}

// output is written by the tour while the test reads it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// inOrder checks that the texts come one after the other.
func inOrder(t *testing.T, told string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		_, after, found := strings.Cut(told, text)
		require.True(t, found, "%q is missing in:\n%s", text, told)
		told = after
	}
}

func TestOnce(t *testing.T) {
	needs.Check(t, needs.ControlPlane, controlplane.Ready(t.Context(), controlplane.Options{}))
	var out, errs output
	require.Zero(t, execute(t.Context(), []string{"-once"}, &out, &errs), "%s%s", &out, &errs)
	assert.Empty(t, errs.String())
	inOrder(t, out.String(),
		"Starting a Kubernetes API server\n", "kube-apiserver is ready",
		"\nInstalling\n",
		"\n1. A Workspace that needs a GPU\n", "\n  +   affinity:\n", "\n  +             - spaces-gpu\n", "\n  +     key: nvidia.com/gpu\n",
		"\n2. A Workspace with an affinity of its own\n",
		"\n                - us-west-2a\n  +           - key: karpenter.sh/nodepool\n", "\n                - us-west-2b\n  +           - key: karpenter.sh/nodepool\n",
		"\n3. A placeholder that would keep nothing warm\n", "\n    Warning: placeholder-qos: ", "\n    The Deployment \"spaces-placeholder-gpu\" is invalid:\n",
		"(rule placeholder-anti-affinity)",
		"\n4. The same placeholder, fixed\n", "\n  -       maxSurge: 25%\n  +       maxSurge: 0\n", "\n  +         karpenter.sh/do-not-disrupt: \"true\"\n",
		"\n5. The image of a WorkspaceTemplate changes\n", "Deployment spaces-placeholder-cpu pulls it\n", "Event ImageSynced: ",
	)
	assert.NotContains(t, out.String(), "Your turn")
	assert.NotContains(t, out.String(), "\x1b", "no colours where there is no terminal")
	for line := range strings.Lines(out.String()) {
		assert.LessOrEqual(t, len(line), 101, line)
	}
}

// The tour stays up until it is told to end, and while it does a rule is switched off: what should have been refused by
// that rule then fails its step.
func TestFullStaysUp(t *testing.T) {
	needs.Check(t, needs.ControlPlane, controlplane.Ready(t.Context(), controlplane.Options{ControllerManager: true, Scheduler: true, KWOK: true}))
	ctx, interrupt := context.WithCancel(t.Context())
	var out, errs output
	code := make(chan int, 1)
	go func() { code <- execute(ctx, []string{"-full"}, &out, &errs) }()
	require.Eventually(t, func() bool { return len(code) > 0 || strings.Contains(out.String(), "\n    warmpool admit ") },
		5*time.Minute, 100*time.Millisecond)
	inOrder(t, out.String(),
		"\n5. Placeholders keep the nodes\n", "spaces-placeholder-gpu-", "spaces-placeholder-gpu-",
		"\n6. The image of a WorkspaceTemplate changes\n", "Event ImageSynced: ", " is Running on ", " is Running on ", "a rollout needs no further node",
		"\n7. A Workspace takes the place of a placeholder\n", " is evicted\n", "the Workspace is Running in its place", "a new placeholder is Pending",
		"both placeholders are Running again", "\nYour turn\n")

	match := regexp.MustCompile(`export KUBECONFIG=(\S+) `).FindStringSubmatch(out.String())
	require.Len(t, match, 2)
	dir := filepath.Dir(match[1])
	assert.FileExists(t, filepath.Join(dir, "warmpool"), "for the commands that were shown")
	switchedOff(t, match[1])

	interrupt()
	require.Zero(t, <-code, "%s", &errs)
	assert.NoDirExists(t, dir)
}

func switchedOff(t *testing.T, kubeconfig string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(kubeconfig), "warmpool-*.yaml"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	configuration, err := os.ReadFile(files[0])
	require.NoError(t, err)
	configuration = append(configuration, "\nrules: {placeholder-anti-affinity: \"Off\"}\n"...)
	require.NoError(t, os.WriteFile(files[0], configuration, 0o600))

	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	again, err := newTour(config, newScreen(io.Discard))
	require.NoError(t, err)
	readRepository(t, again)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		err := again.tell(t.Context(), again.steps(false)[2:3])
		assert.ErrorContains(c, err, `step "1. A placeholder that would keep nothing warm": it should be refused by rule placeholder-anti-affinity`)
	}, time.Minute, 100*time.Millisecond)
}

func readRepository(t *testing.T, tour *tour) {
	t.Helper()
	var err error
	tour.root, err = install.Root()
	require.NoError(t, err)
	require.NoError(t, tour.readTry())
	require.NoError(t, tour.readNodes())
}

// Where there is no warmpool, every step fails.
func TestStepsFailWithoutWarmpool(t *testing.T) {
	tour := &tour{screen: newScreen(io.Discard), warnings: &warnings{}}
	readRepository(t, tour)
	tour.admin = fake.NewClientBuilder().WithObjects(tour.sent[placeholderBroken].DeepCopy()).Build()
	tour.plain = map[string]*unstructured.Unstructured{}
	for name, object := range tour.sent {
		tour.plain[name] = object.DeepCopy()
	}
	for i, want := range []string{
		"only nodes of NodePool spaces-gpu should be selected; for node hyperpod-i-00000000000000001 of NodePool spaces-cpu it is true",
		"only nodes of NodePool spaces-cpu should be selected; for node hyperpod-i-00000000000000003 of NodePool spaces-gpu it is true",
		"it was admitted; rule placeholder-anti-affinity should have refused it",
		"spec.strategy should be filled in",
	} {
		step := tour.steps(false)[i]
		t.Run(step.title, func(t *testing.T) {
			require.EqualError(t, tour.tell(t.Context(), tour.steps(false)[i:i+1]), `step "1. `+step.title+`": `+want)
		})
	}
}

func TestBadUsage(t *testing.T) {
	var out, errs output
	assert.Equal(t, 2, execute(t.Context(), []string{"-twice"}, &out, &errs))
	assert.Contains(t, errs.String(), "flag provided but not defined: -twice")
	assert.Empty(t, out.String())
}

func TestInterruptedAtStart(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var out, errs output
	assert.Equal(t, 1, execute(ctx, []string{"-once"}, &out, &errs))
	assert.Equal(t, "tour: interrupted\n", errs.String())
}
