package policy

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"warmpool.sh/webhook/cpa"
	"warmpool.sh/webhook/sizing"
)

// eachCPA judges each CPA that concerns placeholders.
func (a *Audit) eachCPA(judge func(*Audit, scaler)) {
	a.unread("Deployments", a.facts.Deployments)
	for _, s := range a.CPAs {
		judge(a, scaler{a.about("Deployment", s.Namespace, s.Name, s.PoolName()), s})
	}
}

// scaler is a CPA, with what is found about its Deployment.
type scaler struct {
	about
	*cpa.Scaler
}

// params are what is found about its parameters, where they are.
func (s scaler) params() about {
	about := s.about
	if c := s.ConfigMap; c != nil {
		about.Ref = Ref{Kind: "ConfigMap", Namespace: c.Namespace, Name: c.Name}
	}
	return about
}

// wrong reports something about its parameters.
func (s scaler) wrong(format string, args ...any) *Finding {
	return s.params().invalid(s.Path, s.Value, format, args...)
}

// scaledBy is the running CPA that sets the placeholder's replicas; nil: none, or one that takes no parameters and so
// leaves them alone.
func (a *Audit) scaledBy(o *Object) *cpa.Scaler {
	for _, s := range a.CPAs {
		if s.Scales(o.Namespace, o.Name) {
			return s
		}
	}
	return nil
}

// OtherNodes is how many nodes a CPA counts that no placeholder of its targets is on, at least one: one Workspace is enough
// to set it off.
func (a *Audit) OtherNodes(s *cpa.Scaler, selector labels.Selector) int {
	held := map[string]bool{}
	for _, o := range a.Placeholders {
		if o.Namespace == s.Works && slices.ContainsFunc(s.Targets, func(t cpa.Target) bool { return t.Placeholder && t.Name == o.Name }) {
			for _, pod := range a.Pods(o) {
				held[pod.Spec.NodeName] = true
			}
		}
	}
	return max(s.OtherNodes(a.facts, selector, held), 1)
}

// Scaling is how a Cluster Proportional Autoscaler (CPA) is configured.
type Scaling struct {
	// Name of the CPA's Deployment, with its namespace.
	Name string
	// Linear are its parameters in linear mode; nil: a ladder, or Problem says why they are not known.
	Linear  *sizing.Linear
	Problem string
}

// Scalings are the CPAs of each pool's placeholders, in the order of their keys, by the pool's name.
func (e *Evaluator) Scalings() map[string][]Scaling {
	found := map[string][]Scaling{}
	for _, s := range NewAudit(e).CPAs {
		if s.Pool == nil {
			continue
		}
		scaling := Scaling{Name: s.Namespace + "/" + s.Name}
		if s.Params == nil {
			scaling.Problem = s.Unknown + s.Fault // one of them, or cpa-config says it
		} else {
			scaling.Linear = s.Linear
		}
		found[s.PoolName()] = append(found[s.PoolName()], scaling)
	}
	return found
}
