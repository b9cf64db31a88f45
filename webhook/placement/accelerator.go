package placement

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// wildcards are the characters of a glob that do not stand for themselves.
const wildcards = `*?[\`

// vendor is a maker of accelerators: the globs of its extended resources and the key of the taint that its
// nodes carry by convention.
type vendor struct {
	globs []string
	taint string
}

// Network devices (vpc.amazonaws.com/efa, rdma/…) are extended resources too, but choose no pool.
var vendors = []vendor{
	{globs: []string{"nvidia.com/*"}, taint: "nvidia.com/gpu"},
	{globs: []string{"amd.com/gpu*"}, taint: "amd.com/gpu"},
	{globs: []string{"aws.amazon.com/neuron*"}, taint: "aws.amazon.com/neuron"},
	{globs: []string{"habana.ai/*"}, taint: "habana.ai/gaudi"},
	{globs: []string{"gpu.intel.com/*"}, taint: "gpu.intel.com/i915"},
	{globs: []string{"google.com/tpu*"}, taint: "google.com/tpu"},
}

func matchesAny(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		ok, err := path.Match(glob, name)
		return err == nil && ok
	})
}

// Glob is the glob over the accelerators of the vendor of a resource, or of a taint's key; the name itself where it is no
// known vendor's.
func Glob(name string) (glob string, known bool) {
	for _, v := range vendors {
		if matchesAny(v.globs, name) || v.taint == name {
			return v.globs[0], true
		}
	}
	return name, false
}

// deviceTaint is the key of the taint that nodes with accelerators matching the glob carry by convention:
// the vendor's, else the glob itself when it names one resource, else none.
func deviceTaint(glob string) string {
	for _, v := range vendors {
		if matchesAny(v.globs, strings.ReplaceAll(glob, "*", "x")) || slices.Contains(v.globs, glob) {
			return v.taint
		}
	}
	if strings.ContainsAny(glob, wildcards) {
		return ""
	}
	return glob
}

// Accelerators are the accelerators that a pod asks for, sorted: extended resources that some pool's glob or a known
// vendor's matches, in requests or limits of any container or init container, with a quantity above 0.
func (p *Pools) Accelerators(spec *corev1.PodSpec) []string {
	var names []string
	collect := func(list corev1.ResourceList) {
		for name, quantity := range list {
			if p.isAccelerator(string(name)) && quantity.Sign() > 0 {
				names = append(names, string(name))
			}
		}
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			collect(containers[i].Resources.Requests)
			collect(containers[i].Resources.Limits)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (p *Pools) isAccelerator(name string) bool {
	if !strings.Contains(name, "/") {
		return false
	}
	return matchesAny(p.acceleratorGlobs, name)
}

// Offers tells whether the pool's nodes have every one of the accelerators; none are offered by pools without
// accelerators only.
func (p *Pool) Offers(accelerators []string) bool {
	if len(accelerators) == 0 {
		return len(p.Config.Accelerators) == 0
	}
	for _, name := range accelerators {
		if !matchesAny(p.Config.Accelerators, name) {
			return false
		}
	}
	return true
}

// IsExtendedResource tells whether a resource is counted in whole devices by a device plugin: its name has a domain,
// and not Kubernetes' own.
func IsExtendedResource(name corev1.ResourceName) bool {
	domain, _, found := strings.Cut(string(name), "/")
	return found && !strings.HasSuffix(domain, "kubernetes.io")
}
