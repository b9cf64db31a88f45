package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/controlplane"
)

// Objects that the tour sends, by file name in manifests/try.
const (
	workspaceGPU      = "workspace-gpu.yaml"
	workspaceCPU      = "workspace-cpu.yaml"
	placeholderBroken = "placeholder-broken.yaml"
	placeholderFixed  = "placeholder-fixed.yaml"
)

// tour is told on a screen, about a cluster.
type tour struct {
	*screen
	root     string // of the repository
	admin    client.Client
	warnings *warnings
	nodes    []corev1.Node // of the example cluster
	sent     map[string]*unstructured.Unstructured
	// plain is what an API server without warmpool answers to each of sent.
	plain map[string]*unstructured.Unstructured
}

// step is one thing that the tour shows; it fails when the cluster does something else.
type step struct {
	title string
	show  func(context.Context) error
}

func (t *tour) steps(full bool) []step {
	steps := []step{
		{"A Workspace that needs a GPU", t.gpuWorkspace},
		{"A Workspace with an affinity of its own", t.cpuWorkspace},
		{"A placeholder that would keep nothing warm", t.brokenPlaceholder},
		{"The same placeholder, fixed", t.fixedPlaceholder},
	}
	const image = "The image of a WorkspaceTemplate changes"
	if !full {
		return append(steps, step{image, t.templateImage})
	}
	return append(steps,
		step{"Placeholders keep the nodes", t.placeholdersRun},
		step{image, t.templateImageRolls},
		step{"A Workspace takes the place of a placeholder", t.preemption})
}

// run tells the tour, and unless asked to run once waits until ctx ends; that is no error then. Nothing it started is left.
func run(ctx context.Context, o options, s *screen) (err error) {
	s.heading("warmpool")
	s.say("Placeholder pods keep nodes warm: started, and with the notebook image pulled. A Workspace that comes takes the" +
		" place of one and starts in seconds. warmpool makes sure of both: that Workspaces go to the warm nodes, and that" +
		" placeholders really keep them.")
	s.heading("Starting a Kubernetes API server")
	cp, err := controlplane.Start(ctx, controlplane.Options{
		ControllerManager: o.full, Scheduler: o.full, KWOK: o.full, Log: s,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Stop()) }()
	t, err := newTour(cp.Config, s)
	if err != nil {
		return err
	}
	if err := t.setUp(ctx, cp, o.full); err != nil {
		return err
	}
	if err := t.tell(ctx, t.steps(o.full)); err != nil || o.once {
		return err
	}
	t.invite(cp, o.full)
	<-ctx.Done()
	s.heading("Ending all of it")
	return nil
}

func (t *tour) tell(ctx context.Context, steps []step) error {
	for i, step := range steps {
		title := fmt.Sprintf("%d. %s", i+1, step.title)
		t.heading(title)
		if err := step.show(ctx); err != nil {
			return fmt.Errorf("step %q: %w", title, err)
		}
	}
	return nil
}

// invite says what to do with the cluster.
func (t *tour) invite(cp *controlplane.ControlPlane, full bool) {
	t.heading("Your turn")
	t.say("The cluster stays up until Ctrl-C. In another terminal, in this folder:")
	lines := []string{
		fmt.Sprintf(`export KUBECONFIG=%s PATH="%s:$PATH"`, cp.Kubeconfig, filepath.Dir(cp.Kubeconfig)),
		"kubectl apply --dry-run=server -o yaml -f manifests/try/" + workspaceGPU,
		"kubectl replace --dry-run=server -f manifests/try/" + placeholderBroken,
	}
	if full {
		lines = append(lines, "kubectl create -f manifests/try/"+workspaceGPU, "kubectl get pods -A -o wide")
	}
	t.verbatim(lines...)
	t.say("The same answers from manifests alone, as in CI, without a cluster:")
	t.verbatim("warmpool admit --config manifests/examples/fine/warmpool.yaml --cluster manifests/examples/fine \\",
		"  -f manifests/try/"+placeholderBroken)
}

// warnings keeps what the API server says beside its answers.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeader is called by the client.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

// take returns the warnings since it was last called.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := w.texts
	w.texts = nil
	return texts
}

func newTour(config *rest.Config, s *screen) (*tour, error) {
	t := &tour{screen: s, warnings: &warnings{}}
	config = rest.CopyConfig(config)
	config.WarningHandler = t.warnings
	var err error
	t.admin, err = client.New(config, client.Options{})
	return t, err
}
