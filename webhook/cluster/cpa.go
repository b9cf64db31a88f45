package cluster

import (
	"regexp"
	"slices"
	"strings"

	"github.com/distribution/reference"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// CPA is how a Deployment runs a Cluster Proportional Autoscaler.
type CPA struct {
	// Container is the index of the container that runs it.
	Container int
	// Flags are the last values of its flags, by name.
	Flags map[string]string
	// Namespace is where its targets and its ConfigMap are; empty: nothing tells.
	Namespace string
}

// CPAOf recognizes a CPA by its image or its flags; nil: the Deployment runs none. A CPA behind a shell has no flags here.
func CPAOf(d *appsv1.Deployment) *CPA {
	containers := d.Spec.Template.Spec.Containers
	for i := range containers {
		env := envOf(&containers[i], d.Namespace)
		flags := flagsOf(&containers[i], env)
		_, hasConfigMap := flags["configmap"]
		_, hasTarget := flags["target"]
		if !hasConfigMap || !hasTarget {
			named, err := reference.ParseNormalizedNamed(containers[i].Image)
			if err != nil || !strings.HasSuffix(named.Name(), "/cluster-proportional-autoscaler") {
				continue
			}
		}
		namespace := flags["namespace"]
		if namespace == "" {
			namespace = env["MY_POD_NAMESPACE"]
		}
		return &CPA{Container: i, Flags: flags, Namespace: namespace}
	}
	return nil
}

// Target is one entry of the flag --target.
type Target struct{ Text, Kind, Name string }

// Targets are what the CPA scales, in lower case; the kind in the singular and without its group.
func (c *CPA) Targets() []Target {
	if c.Flags["target"] == "" {
		return nil
	}
	var targets []Target
	// No one has a hundred; what comes after them counts as one that is no target.
	for _, text := range strings.SplitN(c.Flags["target"], ",", 100) {
		text = strings.ToLower(strings.TrimSpace(text))
		kind, name, _ := strings.Cut(text, "/")
		kind, _, _ = strings.Cut(kind, ".") // resource.group
		targets = append(targets, Target{Text: text, Kind: strings.TrimSuffix(kind, "s"), Name: name})
	}
	return targets
}

// valueFlags are those that may have their value in the next argument.
var valueFlags = []string{
	"configmap", "default-params", "kubeconfig", "log-backtrace-at", "log-dir", "max-sync-failures", "namespace",
	"nodelabels", "poll-period-seconds", "stderrthreshold", "target", "v", "vmodule",
}

// flagsOf are the last values of a container's flags, read as CPA reads them.
func flagsOf(c *corev1.Container, env map[string]string) map[string]string {
	flags := map[string]string{}
	arguments := slices.Concat(c.Command, c.Args)
	for i := 0; i < len(arguments) && arguments[i] != "--"; i++ {
		text, isFlag := strings.CutPrefix(arguments[i], "--")
		if !isFlag {
			continue
		}
		name, value, given := strings.Cut(text, "=")
		name = strings.ReplaceAll(name, "_", "-")
		if !given && slices.Contains(valueFlags, name) && i+1 < len(arguments) {
			i++
			value = arguments[i]
		}
		flags[name] = variable.ReplaceAllStringFunc(value, func(reference string) string {
			if value, known := env[reference[2:len(reference)-1]]; known {
				return value
			}
			return reference
		})
	}
	return flags
}

// variable is how arguments refer to the environment.
var variable = regexp.MustCompile(`\$\([A-Za-z_][A-Za-z0-9_.-]*\)`)

// envOf are the variables whose values the Deployment tells.
func envOf(c *corev1.Container, namespace string) map[string]string {
	env := map[string]string{}
	for _, v := range c.Env {
		switch {
		case v.ValueFrom == nil:
			env[v.Name] = v.Value
		case v.ValueFrom.FieldRef != nil && v.ValueFrom.FieldRef.FieldPath == "metadata.namespace":
			env[v.Name] = namespace
		}
	}
	return env
}
