package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/bench/baseline"
	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
	"warmpool.sh/webhook"
	"warmpool.sh/webhook/policy"
)

// The programs that the control plane knows by name.
const (
	apiServer = "kube-apiserver"
	etcd      = "etcd"
)

const (
	limit = time.Minute // for anything that is waited for
	poll  = 100 * time.Millisecond
)

// cluster is an API server with every variant.
type cluster struct {
	*controlplane.ControlPlane
	admin     client.Client
	poster    *http.Client // for bodies that are encoded already
	root      string
	warmpool  *install.Warmpool
	evaluator *policy.Evaluator
	servers   []server
	// bare is a Workspace's pod as its controller creates it, placed is what becomes of it; podName stands for the name.
	bare, placed []byte
	created      int
}

// server is a webhook's process.
type server struct {
	name string
	port int
	pid  int
}

func start(ctx context.Context) (c *cluster, err error) {
	c = &cluster{}
	if c.ControlPlane, err = controlplane.Start(ctx, controlplane.Options{Measured: true, Log: os.Stderr}); err != nil {
		return nil, err
	}
	if err := c.furnish(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *cluster) furnish(ctx context.Context) (err error) {
	if c.admin, err = client.New(c.Config, client.Options{}); err != nil {
		return err
	}
	if c.poster, err = rest.HTTPClientFor(c.Config); err != nil {
		return err
	}
	if c.root, err = install.Root(); err != nil {
		return err
	}
	if c.warmpool, err = install.Up(ctx, c.ControlPlane, install.Options{Root: c.root}); err != nil {
		return err
	}
	c.servers = []server{{"warmpool", c.warmpool.WebhookPort, c.warmpool.PID()}}
	if c.evaluator, err = baseline.Evaluator(c.root, c.warmpool.ConfigFile); err != nil {
		return err
	}
	if err := c.applyExamples(ctx); err != nil {
		return err
	}
	if err := c.createNamespaces(ctx); err != nil {
		return err
	}
	if c.bare, err = c.workspacePod(); err != nil {
		return err
	}
	shipped, err := c.narrow(ctx)
	if err != nil {
		return err
	}
	want, patch, err := c.expect(ctx)
	if err != nil {
		return err
	}
	if err := c.startServers(ctx, patch); err != nil {
		return err
	}
	if err := c.register(ctx, shipped); err != nil {
		return err
	}
	return c.checkVariants(ctx, want)
}

// applyExamples makes the facts of the API server those of the evaluator, as far as placement goes by them.
func (c *cluster) applyExamples(ctx context.Context) error {
	for _, name := range []string{"cluster.yaml", "nodepools.yaml", "templates.yaml"} {
		text, err := os.ReadFile(filepath.Join(baseline.Examples(c.root), name))
		if err != nil {
			return err
		}
		objects, err := controlplane.Decode(bytes.NewReader(text))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == "HyperpodNodeClass" || o.GetKind() == "PriorityClass"
		})
		if err := c.Apply(ctx, objects...); err != nil {
			return err
		}
	}
	return nil
}

// workspacePod is the pod of testdata without what an API server has added.
func (c *cluster) workspacePod() ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(c.root, "test", "bench", "testdata", "pod.json"))
	if err != nil {
		return nil, err
	}
	var pod corev1.Pod
	if err := json.Unmarshal(text, &pod); err != nil {
		return nil, fmt.Errorf("pod.json: %w", err)
	}
	pod.Spec.Tolerations, pod.Spec.Priority, pod.Spec.PreemptionPolicy = nil, nil, nil
	return asCreated(&pod)
}

// expect gives the pod that placement makes, and the patch that makes it.
func (c *cluster) expect(ctx context.Context) (*corev1.Pod, []byte, error) {
	var pod *corev1.Pod
	err := wait.PollUntilContextTimeout(ctx, poll, limit, true, func(ctx context.Context) (unplaced bool, err error) {
		pod, err = c.dryRun(ctx, variant{kind: none}, c.bare)
		return err == nil && pod.Spec.Affinity == nil, err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("wait until warmpool is not asked about namespace %s: %w", none.namespace(), err)
	}
	o := c.evaluator.Pod(pod, none.namespace())
	patch, err := c.evaluator.Mutate(o).JSON()
	if err != nil {
		return nil, nil, err
	}
	if warnings := webhook.Warnings(c.evaluator.Check(o)); !bytes.Contains(patch, []byte(inPool)) || len(warnings) > 0 {
		return nil, nil, fmt.Errorf("the pod of testdata must be one to place without a warning: patch %s, warnings %q", patch, warnings)
	}
	c.placed, err = asCreated(o.Pod)
	return o.Pod, patch, err
}

// startServers starts the baselines, each as a process with its own port.
func (c *cluster) startServers(ctx context.Context, patch []byte) error {
	binary, patchFile := filepath.Join(c.Dir, "server"), filepath.Join(c.Dir, "patch.json")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./test/bench/server")
	build.Dir = c.root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the baselines' server: %w\n%s", err, out)
	}
	if err := os.WriteFile(patchFile, patch, 0o600); err != nil {
		return err
	}
	for _, k := range []kind{noop, constant, framework} {
		process, err := c.Run(ctx, controlplane.Program{
			Name: string(k), Path: binary, Ports: 1,
			Command: func(ports []int) (args, env []string) {
				return []string{
					"-answer=" + string(k), "-patch=" + patchFile, "-root=" + c.root, "-config=" + c.warmpool.ConfigFile,
					"-certs=" + c.Dir, "-port=" + strconv.Itoa(ports[0]),
				}, nil
			},
			Ready: func(ctx context.Context, ports []int) error {
				connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(ports[0]))
				if err != nil {
					return err
				}
				return connection.Close()
			},
		})
		if err != nil {
			return err
		}
		c.servers = append(c.servers, server{string(k), process.Ports[0], process.PID()})
	}
	return nil
}

// checkVariants waits until each variant makes of a pod what it should: whoever places, places alike.
func (c *cluster) checkVariants(ctx context.Context, want *corev1.Pod) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, poll, limit, true, func(ctx context.Context) (bool, error) {
		last = nil
		for _, v := range slices.Concat(variants, placedVariants) {
			pod, err := c.dryRun(ctx, v, c.body(v))
			switch placed := err == nil && equality.Semantic.DeepEqual(pod.Spec, want.Spec); {
			case err != nil:
				last = errors.Join(last, fmt.Errorf("%s: %w", v, err))
			case placed != v.places():
				last = errors.Join(last, fmt.Errorf("%s: placed is %t", v, placed))
			}
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait until all variants do what they should: %w: %w", err, last)
	}
	return nil
}

func (c *cluster) server(k kind) (server, bool) {
	at := slices.IndexFunc(c.servers, func(s server) bool { return s.name == k.server() })
	if at < 0 {
		return server{}, false
	}
	return c.servers[at], true
}

// asCreated is the JSON of a pod without what each creation makes anew, under the name podName.
func asCreated(pod *corev1.Pod) ([]byte, error) {
	bare := corev1.Pod{TypeMeta: pod.TypeMeta, Spec: pod.Spec}
	bare.APIVersion, bare.Kind = "v1", "Pod"
	bare.Name, bare.Labels = podName, pod.Labels
	text, err := json.Marshal(bare)
	if err == nil && strings.Count(string(text), podName) != 1 {
		err = fmt.Errorf("the pod has the text %s beside its name", podName)
	}
	return text, err
}
