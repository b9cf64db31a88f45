package controlplane

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Names of the programs and of the data files beside them.
const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	kwok              = "kwok"
	kwokStages        = "kwok-stages.yaml"
	kwokNodeStages    = "kwok-node-stages.yaml"
	kubectl           = "kubectl"
	karpenter         = "karpenter"
	karpenterCRDs     = "karpenter-crds.yaml"
)

const kubernetes = "k8s.io/kubernetes"

// artifact is one file that a control plane or a node needs. It comes out of a
// module that the go.mod in components or nodecomponents pins.
type artifact struct {
	name, module string
	// main is the folder of the program in the module, if it is a program.
	main string
	// minutes is how long a first build takes on two cores, after those above it.
	minutes int
	// globs name the files in the module that make up a data file.
	globs []string
	// envtest says that setup-envtest offers it prebuilt.
	envtest bool
}

func artifacts(opts Options) []artifact {
	list := []artifact{
		{name: etcd, module: "go.etcd.io/etcd/server/v3", main: ".", minutes: 2, envtest: true},
		{name: apiServer, module: kubernetes, main: "cmd/kube-apiserver", minutes: 11, envtest: true},
	}
	if opts.ControllerManager {
		list = append(list, artifact{name: controllerManager, module: kubernetes, main: "cmd/kube-controller-manager", minutes: 3})
	}
	if opts.Scheduler {
		list = append(list, artifact{name: scheduler, module: kubernetes, main: "cmd/kube-scheduler", minutes: 1})
	}
	if opts.KWOK {
		const stages = "kustomize/stage/"
		globs := []string{stages + "node/fast/node-*.yaml", stages + "node/heartbeat-with-lease/node-*.yaml"}
		if !opts.NodesOnly {
			globs = append(globs, stages+"pod/fast/pod-*.yaml")
		}
		list = append(list,
			artifact{name: kwok, module: "sigs.k8s.io/kwok", main: "cmd/kwok", minutes: 2},
			artifact{name: opts.stages(), module: "sigs.k8s.io/kwok", globs: globs})
	}
	if opts.Karpenter {
		list = append(list,
			artifact{name: karpenter, module: "sigs.k8s.io/karpenter", main: "kwok", minutes: 3},
			artifact{name: karpenterCRDs, module: "sigs.k8s.io/karpenter", globs: []string{
				"pkg/apis/crds/*.yaml", "kwok/apis/crds/*.yaml",
			}})
	}
	return list
}

// stages is the file that says what KWOK does.
func (o Options) stages() string {
	if o.NodesOnly {
		return kwokNodeStages
	}
	return kwokStages
}

// components is a module that pins the sources of programs.
type components struct {
	folder string // beside this file
	lead   string // the module whose version the folder in the cache is named for
	flags  []string
	env    []string
}

var clusterComponents = components{folder: "components", lead: kubernetes}

// store finds artifacts, or makes them.
type store struct {
	components
	assets string // the folder that the user names, or ""
	source string // the folder of the components' go.mod
	goMod  []byte
	cache  string // the folder of this set of versions, shared by every clone
	log    io.Writer
	// prebuilt is the folder of what setup-envtest has downloaded, "" where it cannot.
	prebuilt func(context.Context) string
}

// locate returns the path of every file that a control plane with opts needs.
func locate(ctx context.Context, opts Options) (map[string]string, error) {
	return locateIn(ctx, clusterComponents, opts.Log, artifacts(opts))
}

func locateIn(ctx context.Context, from components, log io.Writer, list []artifact) (map[string]string, error) {
	s, err := findStore(ctx, from, log)
	if err != nil {
		return nil, err
	}
	paths := map[string]string{}
	for _, a := range list {
		if paths[a.name], err = s.get(ctx, a); err != nil {
			return nil, fmt.Errorf("get %s: %w", a.name, err)
		}
	}
	return paths, nil
}

// findStore makes the store of this repository and user; a nil log discards.
func findStore(ctx context.Context, from components, log io.Writer) (*store, error) {
	module, err := moduleDir(ctx)
	if err != nil {
		return nil, err
	}
	userCache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find the user's cache folder: %w", err)
	}
	source := filepath.Join(module, "test", "harness", "controlplane", from.folder)
	return newStore(from, os.Getenv("KUBEBUILDER_ASSETS"), source, userCache, cmp.Or[io.Writer](log, io.Discard))
}

// moduleDir asks the go command, which knows where this module is however the
// program was compiled: the file name that runtime.Caller gives is no path on disk
// after a build with -trimpath, and go:embed does not reach into a nested module.
func moduleDir(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "warmpool.sh").Output()
	if err != nil {
		return "", fmt.Errorf("find the module warmpool.sh (run this inside the repository): %w", withStderr(err))
	}
	return strings.TrimSpace(string(out)), nil
}

func newStore(from components, assets, source, userCache string, log io.Writer) (*store, error) {
	goMod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("read the versions of the components: %w", err)
	}
	goSum, err := os.ReadFile(filepath.Join(source, "go.sum"))
	if err != nil {
		return nil, fmt.Errorf("read the versions of the components: %w", err)
	}
	if assets != "" {
		if assets, err = filepath.Abs(assets); err != nil {
			return nil, fmt.Errorf("resolve KUBEBUILDER_ASSETS: %w", err)
		}
	}
	s := &store{components: from, assets: assets, source: source, goMod: goMod, log: log}
	version, err := s.version(from.lead)
	if err != nil {
		return nil, err
	}
	key := fmt.Sprintf("%s-%.4x", version, sha256.Sum256(goSum))
	s.cache = filepath.Join(userCache, "warmpool", "controlplane", key)
	s.prebuilt = s.downloadOnce(indexLimit, downloadLimit)
	return s, nil
}

// version returns the pinned version of a module, without its v.
func (s *store) version(module string) (string, error) {
	match := regexp.MustCompile(`(?m)^(?:require)?\s+` + regexp.QuoteMeta(module) + ` v(\S+)`).FindSubmatch(s.goMod)
	if match == nil {
		return "", fmt.Errorf("%s does not require %s", filepath.Join(s.source, "go.mod"), module)
	}
	return string(match[1]), nil
}

// get returns the path of a, which it makes where it is not there yet.
func (s *store) get(ctx context.Context, a artifact) (string, error) {
	if path, ok := s.find(a); ok {
		return path, nil
	}
	path := filepath.Join(s.cache, a.name)
	return path, s.make(ctx, a, path)
}

// find looks in KUBEBUILDER_ASSETS, then in the cache.
func (s *store) find(a artifact) (string, bool) {
	for _, dir := range []string{s.assets, s.cache} {
		if path := filepath.Join(dir, a.name); dir != "" && exists(path) {
			return path, true
		}
	}
	return "", false
}

func exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// withStderr adds what a command wrote to standard error, cut to its last lines.
func withStderr(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) || len(exit.Stderr) == 0 {
		return err
	}
	return fmt.Errorf("%w:\n%s", err, lastLines(string(exit.Stderr)))
}
