package policy

import (
	"regexp"
	"slices"
	"strings"

	"github.com/distribution/reference"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/placement"
)

// autoscaler is a Cluster Proportional Autoscaler (CPA) that scales placeholders, or means to.
type autoscaler struct {
	*appsv1.Deployment
	// args is the path of its flags, flags their last values by name.
	args  *field.Path
	flags map[string]string
	// namespace is where its targets and its ConfigMap are.
	namespace string
	targets   []scaleTarget
	// pool is that of the first target that has one; nil: none.
	pool *placement.Pool
	// params say how many replicas it wants; see paramsOf.
	params paramsSource
}

// scaleTarget is one entry of the flag --target.
type scaleTarget struct {
	text, kind, name string
	// deployment is what the name stands for, and placeholder the same where it is one; nil: none.
	deployment  *appsv1.Deployment
	placeholder *Object
}

// autoscalerContainer is the index of the container that runs CPA, by its image or its flags; -1: none.
func autoscalerContainer(spec *corev1.PodSpec) int {
	return slices.IndexFunc(spec.Containers, func(c corev1.Container) bool {
		if named, err := reference.ParseNormalizedNamed(c.Image); err == nil && strings.HasSuffix(named.Name(), "/cluster-proportional-autoscaler") {
			return true
		}
		flags := flagsOf(&c, "")
		_, configMap := flags["configmap"]
		_, target := flags["target"]
		return configMap && target
	})
}

// IsAutoscaler tells the Deployments that run a Cluster Proportional Autoscaler (CPA), of placeholders or of others.
func IsAutoscaler(d *appsv1.Deployment) bool { return autoscalerContainer(&d.Spec.Template.Spec) >= 0 }

// findAutoscalers are the CPAs that concern placeholders, in the order of their keys. Clusters run others, such as the
// one of their DNS: those are nobody's business here.
func (a *Audit) findAutoscalers() []*autoscaler {
	placeholders := map[string]*Object{}
	for _, o := range a.placeholders {
		placeholders[o.Namespace+"/"+o.Name] = o
	}
	var found []*autoscaler
	for _, d := range a.facts.Deployments.Defined() {
		i := autoscalerContainer(&d.Spec.Template.Spec)
		if i < 0 {
			continue
		}
		s := newAutoscaler(d, i)
		for t := range s.targets {
			if s.targets[t].kind != "deployment" {
				continue
			}
			s.targets[t].deployment = a.facts.Deployments.Get(s.namespace + "/" + s.targets[t].name)
			s.targets[t].placeholder = placeholders[s.namespace+"/"+s.targets[t].name]
			if o := s.targets[t].placeholder; o != nil && s.pool == nil {
				s.pool = o.Pool
			}
		}
		if a.concernsPlaceholders(s) {
			s.params = s.paramsOf(a.facts.ConfigMaps)
			found = append(found, s)
		}
	}
	return found
}

func newAutoscaler(d *appsv1.Deployment, container int) *autoscaler {
	c := &d.Spec.Template.Spec.Containers[container]
	s := &autoscaler{Deployment: d, args: templateSpecPath.Child("containers").Index(container), flags: flagsOf(c, d.Namespace)}
	if len(c.Args) > 0 || len(c.Command) == 0 {
		s.args = s.args.Child("args")
	} else {
		s.args = s.args.Child("command")
	}
	s.namespace = s.flags["namespace"]
	if s.namespace == "" {
		s.namespace = envOf(c, d.Namespace)["MY_POD_NAMESPACE"]
	}
	if s.flags["target"] != "" {
		// Nobody has a hundred; what comes after them counts as one that is no target.
		for _, text := range strings.SplitN(s.flags["target"], ",", 100) {
			text = strings.ToLower(strings.TrimSpace(text))
			kind, name, _ := strings.Cut(text, "/")
			kind, _, _ = strings.Cut(kind, ".") // resource.group
			s.targets = append(s.targets, scaleTarget{text: text, kind: strings.TrimSuffix(kind, "s"), name: name})
		}
	}
	return s
}

// concernsPlaceholders tells whether a CPA scales a placeholder, or seems to mean to: it stands or looks in their own
// namespace, or it names a Deployment that is missing, and placeholders are there or have that name. Of a live cluster
// not all Deployments need be known, so that there a missing one may well be somebody else's.
func (a *Audit) concernsPlaceholders(s *autoscaler) bool {
	own := a.config.Placeholders.Namespace
	if s.Namespace == own || s.namespace == own {
		return true
	}
	return slices.ContainsFunc(s.targets, func(t scaleTarget) bool {
		return t.placeholder != nil || t.deployment == nil && slices.ContainsFunc(a.placeholders, func(o *Object) bool {
			return o.Name == t.name || s.UID == "" && o.Namespace == s.namespace
		})
	})
}

// eachAutoscaler gathers what is found about each CPA; what names no object is about its Deployment.
func (a *Audit) eachAutoscaler(judge func(*autoscaler) []Finding) []Finding {
	findings := unread("Deployments", a.facts.Deployments)
	for _, s := range a.autoscalers {
		for _, f := range judge(s) {
			if f.Object == (Ref{}) {
				f = f.about("Deployment", s.Namespace, s.Name, s.poolName())
			}
			findings = append(findings, f)
		}
	}
	return findings
}

func (s *autoscaler) poolName() string {
	if s.pool == nil {
		return ""
	}
	return s.pool.Config.Name
}

// String names the CPA in messages about others.
func (s *autoscaler) String() string { return "CPA " + s.Namespace + "/" + s.Name }

// paused tells that no CPA runs.
func (s *autoscaler) paused() bool { return s.Spec.Replicas != nil && *s.Spec.Replicas == 0 }

// valueFlags are those that may have their value in the next argument.
var valueFlags = []string{
	"configmap", "default-params", "kubeconfig", "log-backtrace-at", "log-dir", "max-sync-failures", "namespace",
	"nodelabels", "poll-period-seconds", "stderrthreshold", "target", "v", "vmodule",
}

// flagsOf are the last values of a container's flags, read as CPA reads them.
func flagsOf(c *corev1.Container, namespace string) map[string]string {
	env, flags := envOf(c, namespace), map[string]string{}
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
