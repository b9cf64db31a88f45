// Package install puts warmpool, as its manifests ship it, onto a control plane of package controlplane: everything of
// the overlay is applied, and warmpool itself runs as a process with the rights of the ServiceAccount that it has there.
//
// Two things differ from a cluster, because there is no network of pods here: the Service is an ExternalName for
// localhost, and the webhook configurations name the port of the process.
package install

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/karpenter/pkg/apis"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"warmpool.sh/test/harness/controlplane"
)

// Names of the shipped manifests.
const (
	Namespace  = "warmpool-system"
	Deployment = "warmpool"
	Service    = "warmpool-webhook"
	configMap  = "warmpool-config"
)

// Warmpool is a warmpool that runs beside a control plane.
type Warmpool struct {
	*controlplane.Process
	// ConfigFile is the configuration in force; writing to it reloads it.
	ConfigFile string
	// WebhookPort, MetricsURL and HealthURL are where the process listens on 127.0.0.1.
	WebhookPort           int
	MetricsURL, HealthURL string
}

// Options say what is installed; the zero value installs everything and waits until it is ready.
type Options struct {
	// Root is the repository's folder; default the one above the working directory that has go.mod.
	Root string
	// Overlay is the folder of manifests that is installed; default overlays/embedded.
	Overlay string
	// WithoutCRDs leaves the CRDs of Karpenter and jupyter-k8s out.
	WithoutCRDs bool
	// Log receives one line per step; nil discards them.
	Log io.Writer
}

// CRDs are those of Karpenter's NodePool and NodeClaim and of a WorkspaceTemplate, a small stand-in for the real one.
func CRDs(root string) ([]*unstructured.Unstructured, error) {
	template, err := os.ReadFile(filepath.Join(root, "test", "harness", "crds", "workspacetemplates.yaml"))
	if err != nil {
		return nil, err
	}
	objects, err := controlplane.Decode(bytes.NewReader(template))
	if err != nil {
		return nil, err
	}
	for _, crd := range apis.CRDs {
		if crd.Name != "nodepools.karpenter.sh" && crd.Name != "nodeclaims.karpenter.sh" {
			continue
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		if err != nil {
			return nil, fmt.Errorf("read Karpenter's CRD: %w", err)
		}
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	return objects, nil
}

// Examples are the namespaces, NodePools and templates of manifests/examples/fine, but for kinds without a CRD here and what
// the overlays have themselves.
func Examples(root string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, name := range []string{"cluster.yaml", "nodepools.yaml", "templates.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, "manifests", "examples", "fine", name))
		if err != nil {
			return nil, err
		}
		objects, err := controlplane.Decode(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, objects...)
	}
	return slices.DeleteFunc(all, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "HyperpodNodeClass" || o.GetKind() == "PriorityClass"
	}), nil
}

// Render builds a kustomization, in the order in which it is to be applied.
func Render(dir string) ([]*unstructured.Unstructured, error) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", dir, err)
	}
	yaml, err := built.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", dir, err)
	}
	return controlplane.Decode(bytes.NewReader(yaml))
}

// Up installs an overlay and starts one replica of warmpool; it returns when /readyz says so.
func Up(ctx context.Context, cp *controlplane.ControlPlane, o Options) (*Warmpool, error) {
	if o.Root == "" {
		root, err := Root()
		if err != nil {
			return nil, err
		}
		o.Root = root
	}
	if !o.WithoutCRDs {
		crds, err := CRDs(o.Root)
		if err != nil {
			return nil, err
		}
		if err := cp.Apply(ctx, crds...); err != nil {
			return nil, err
		}
	}
	shipped, err := Render(filepath.Join(o.Root, "manifests", cmp.Or(o.Overlay, "overlays/embedded")))
	if err != nil {
		return nil, err
	}
	port, err := controlplane.FreePort()
	if err != nil {
		return nil, err
	}
	local, err := Localize(shipped, port)
	if err != nil {
		return nil, err
	}
	// Webhooks come last, as kubectl apply -k orders them, so nothing before them waits for warmpool.
	if err := cp.Apply(ctx, local...); err != nil {
		return nil, err
	}
	binary, err := Build(ctx, o.Root, cp.Dir)
	if err != nil {
		return nil, err
	}
	return Start(ctx, cp, binary, shipped, port)
}

// Localize gives the shipped objects as they are applied beside a process that serves on port: without the Deployment of
// warmpool itself.
func Localize(shipped []*unstructured.Unstructured, port int) ([]*unstructured.Unstructured, error) {
	var local []*unstructured.Unstructured
	for _, original := range shipped {
		object := original.DeepCopy()
		switch {
		case object.GetKind() == "Deployment" && object.GetName() == Deployment:
			continue
		case object.GetKind() == "Service" && object.GetName() == Service:
			object.Object["spec"] = map[string]any{"type": "ExternalName", "externalName": "localhost"}
		case strings.HasSuffix(object.GetKind(), "WebhookConfiguration"):
			if err := setPort(object, port); err != nil {
				return nil, err
			}
		}
		local = append(local, object)
	}
	return local, nil
}

func setPort(configuration *unstructured.Unstructured, port int) error {
	webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	if err != nil {
		return err
	}
	for _, webhook := range webhooks {
		content, ok := webhook.(map[string]any)
		if !ok {
			return fmt.Errorf("%s %s: a webhook is no object", configuration.GetKind(), configuration.GetName())
		}
		if err := unstructured.SetNestedField(content, int64(port), "clientConfig", "service", "port"); err != nil {
			return err
		}
	}
	return unstructured.SetNestedSlice(configuration.Object, webhooks, "webhooks")
}

// Root is the repository's folder.
func Root() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the repository's folder (run this inside it): %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Build compiles warmpool into dir and returns the path of the executable.
func Build(ctx context.Context, root, dir string) (string, error) {
	binary := filepath.Join(dir, "warmpool")
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-w", "-o", binary, "./cmd/warmpool")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build warmpool: %w\n%s", err, out)
	}
	return binary, nil
}

// Start runs one replica with the arguments of the shipped Deployment and the rights of its ServiceAccount. port is that
// of the webhook server; other replicas get ports of their own from controlplane.FreePort. Arguments in extra win over
// the shipped ones.
func Start(ctx context.Context, cp *controlplane.ControlPlane, binary string, shipped []*unstructured.Unstructured, port int, extra ...string) (*Warmpool, error) {
	deployment, configuration, err := shippedWarmpool(shipped)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := cp.ServiceAccountKubeconfig(ctx, Namespace, deployment.Spec.Template.Spec.ServiceAccountName)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("warmpool-%d", port)
	w := &Warmpool{WebhookPort: port, ConfigFile: filepath.Join(cp.Dir, name+".yaml")}
	if err := os.WriteFile(w.ConfigFile, []byte(configuration), 0o600); err != nil {
		return nil, err
	}
	w.Process, err = cp.Run(ctx, controlplane.Program{
		Name: name, Path: binary, Ports: 2,
		Command: func(ports []int) (args, env []string) {
			w.MetricsURL = fmt.Sprintf("http://127.0.0.1:%d/metrics", ports[0])
			w.HealthURL = fmt.Sprintf("http://127.0.0.1:%d", ports[1])
			// No endpoints follow here; a delay that the Deployment states comes later and counts.
			args = append(slices.Insert(slices.Clone(deployment.Spec.Template.Spec.Containers[0].Args), 1, "--shutdown-delay=0s"),
				"--config="+w.ConfigFile, "--kubeconfig="+kubeconfig, "--namespace="+Namespace,
				"--bind-address=127.0.0.1", "--port="+strconv.Itoa(port),
				"--metrics-bind-address=127.0.0.1:"+strconv.Itoa(ports[0]), "--health-probe-bind-address=127.0.0.1:"+strconv.Itoa(ports[1]))
			return append(args, extra...), append(shippedEnv(deployment), "POD_NAMESPACE="+Namespace, "POD_NAME="+name)
		},
		Ready: func(ctx context.Context, _ []int) error { return Get(ctx, w.HealthURL+"/readyz") },
	})
	return w, err
}

// shippedEnv are the variables of the shipped container that have a value, such as GOMEMLIMIT.
func shippedEnv(deployment *appsv1.Deployment) []string {
	var env []string
	for _, variable := range deployment.Spec.Template.Spec.Containers[0].Env {
		if variable.Value != "" {
			env = append(env, variable.Name+"="+variable.Value)
		}
	}
	return env
}

// shippedWarmpool finds the Deployment of warmpool and the text of its configuration.
func shippedWarmpool(shipped []*unstructured.Unstructured) (*appsv1.Deployment, string, error) {
	var deployment appsv1.Deployment
	var configuration string
	for _, object := range shipped {
		switch {
		case object.GetKind() == "Deployment" && object.GetName() == Deployment:
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment); err != nil {
				return nil, "", fmt.Errorf("read the Deployment of warmpool: %w", err)
			}
		case object.GetKind() == "ConfigMap" && object.GetName() == configMap:
			configuration, _, _ = unstructured.NestedString(object.Object, "data", "warmpool.yaml")
		}
	}
	if len(deployment.Spec.Template.Spec.Containers) == 0 || configuration == "" {
		return nil, "", fmt.Errorf("the manifests hold no Deployment %s or no ConfigMap %s with warmpool.yaml", Deployment, configMap)
	}
	return &deployment, configuration, nil
}

// Get asks a URL; anything but 200 is an error with what the answer said.
func Get(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	return nil
}
