package cpa

import (
	"cmp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/sizing"
)

// Scaler is a CPA that scales placeholders, or means to.
type Scaler struct {
	*appsv1.Deployment
	// Args is the path of its flags, Flags their last values by name.
	Args  *field.Path
	Flags map[string]string
	// Works is the namespace of its targets and of its ConfigMap; empty: nothing says.
	Works   string
	Targets []Target
	// Pool is that of the first target that has one; nil: none.
	Pool *placement.Pool
	// Source says how many replicas it wants.
	Source
}

// Target is one entry of the flag --target.
type Target struct {
	cluster.Target
	// Deployment is what the name stands for; nil: there is none. Placeholder tells that it is one, and Pool is its pool.
	Deployment  *appsv1.Deployment
	Placeholder bool
	Pool        *placement.Pool
}

// Find finds the CPAs that concern placeholders, in the order of their keys. Clusters run others, such as the one of their
// DNS: those are no one's business here. own is the namespace of placeholders, and placeholders are the pools, or nil, of
// all placeholders by their keys.
func Find(facts *cluster.Snapshot, own string, placeholders map[string]*placement.Pool) []*Scaler {
	var found []*Scaler
	for _, d := range facts.Deployments.Defined() {
		flags := cluster.CPAOf(d)
		if flags == nil {
			continue
		}
		s := newScaler(d, flags)
		for i := range s.Targets {
			t := &s.Targets[i]
			if t.Kind != "deployment" {
				continue
			}
			key := s.Works + "/" + t.Name
			t.Deployment = facts.Deployments.Get(key)
			t.Pool, t.Placeholder = placeholders[key]
			s.Pool = cmp.Or(s.Pool, t.Pool)
		}
		if s.concerns(own, placeholders) {
			s.Source = s.source(facts.ConfigMaps)
			found = append(found, s)
		}
	}
	return found
}

func newScaler(d *appsv1.Deployment, flags *cluster.CPA) *Scaler {
	c := &d.Spec.Template.Spec.Containers[flags.Container]
	list := "command"
	if len(c.Args) > 0 || len(c.Command) == 0 {
		list = "args"
	}
	s := &Scaler{
		Deployment: d, Flags: flags.Flags, Works: flags.Namespace,
		Args: field.NewPath("spec", "template", "spec", "containers").Index(flags.Container).Child(list),
	}
	for _, target := range flags.Targets() {
		s.Targets = append(s.Targets, Target{Target: target})
	}
	return s
}

// concerns tells whether a CPA scales a placeholder, or seems to mean to: it stands or looks in their own namespace, or it
// names a Deployment that is missing, and placeholders are there or have that name. Of a live cluster not all Deployments
// need be known, so that there a missing one may well be somebody else's.
func (s *Scaler) concerns(own string, placeholders map[string]*placement.Pool) bool {
	if s.Namespace == own || s.Works == own {
		return true
	}
	for _, t := range s.Targets {
		if t.Placeholder {
			return true
		}
		for key := range placeholders {
			namespace, name, _ := strings.Cut(key, "/")
			if t.Deployment == nil && (name == t.Name || s.UID == "" && namespace == s.Works) {
				return true
			}
		}
	}
	return false
}

// PoolName is the name of its pool; empty: none.
func (s *Scaler) PoolName() string {
	if s.Pool == nil {
		return ""
	}
	return s.Pool.Config.Name
}

// String names the CPA in messages about others.
func (s *Scaler) String() string { return "CPA " + s.Namespace + "/" + s.Name }

// Paused tells that no CPA runs.
func (s *Scaler) Paused() bool { return s.Spec.Replicas != nil && *s.Spec.Replicas == 0 }

// Scales tells whether it sets the replicas of a placeholder: it runs, takes its parameters and has it as a target.
func (s *Scaler) Scales(namespace, name string) bool {
	return !s.Paused() && s.Fault == "" && namespace == s.Works &&
		slices.ContainsFunc(s.Targets, func(t Target) bool { return t.Placeholder && t.Name == name })
}

// AddsNodes tells whether its pool gets a node for each placeholder that has none.
func (s *Scaler) AddsNodes() bool {
	return !s.Pool.Static && s.Pool.Config.Autoscaler != config.NoAutoscaler
}

// LargestNode are the cores of the largest type of nodes that a placeholder of it may land on; 0: not known.
func (s *Scaler) LargestNode(sizes *sizing.Sizes) (cores float64, shape string) {
	for _, t := range s.Targets {
		if !t.Placeholder {
			continue
		}
		for _, sh := range sizes.Pool(s.PoolName()).Shapes {
			offer, known := sh.Offers[corev1.ResourceCPU]
			if have := sizing.Cores(offer.Allocatable); known && have > cores && sh.Hosts(&t.Deployment.Spec.Template.Spec) {
				cores, shape = have, sh.NameAmong(nil)
			}
		}
	}
	return cores, shape
}
