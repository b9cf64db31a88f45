package policy

import "warmpool.sh/webhook/sizing"

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
	for _, s := range e.audit().autoscalers {
		if s.pool == nil {
			continue
		}
		scaling := Scaling{Name: s.Namespace + "/" + s.Name}
		switch p := s.params; {
		case p.autoscalerParams == nil:
			scaling.Problem = p.unknown + p.fault // one of them, or cpa-config says it
		case p.Linear != nil:
			scaling.Linear = p.Linear
		}
		found[s.poolName()] = append(found[s.poolName()], scaling)
	}
	return found
}
