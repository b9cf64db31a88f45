package policy

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/cluster"
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
	cluster.Target
	// deployment is what the name stands for, and placeholder the same where it is one; nil: none.
	deployment  *appsv1.Deployment
	placeholder *Object
}

// findAutoscalers are the CPAs that concern placeholders, in the order of their keys. Clusters run others, such as the
// one of their DNS: those are no one's business here.
func (a *Audit) findAutoscalers() []*autoscaler {
	placeholders := map[string]*Object{}
	for _, o := range a.placeholders {
		placeholders[o.Namespace+"/"+o.Name] = o
	}
	var found []*autoscaler
	for _, d := range a.facts.Deployments.Defined() {
		cpa := cluster.CPAOf(d)
		if cpa == nil {
			continue
		}
		s := newAutoscaler(d, cpa)
		for t := range s.targets {
			if s.targets[t].Kind != "deployment" {
				continue
			}
			s.targets[t].deployment = a.facts.Deployments.Get(s.namespace + "/" + s.targets[t].Name)
			s.targets[t].placeholder = placeholders[s.namespace+"/"+s.targets[t].Name]
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

func newAutoscaler(d *appsv1.Deployment, cpa *cluster.CPA) *autoscaler {
	c := &d.Spec.Template.Spec.Containers[cpa.Container]
	s := &autoscaler{
		Deployment: d, args: templateSpecPath.Child("containers").Index(cpa.Container), flags: cpa.Flags, namespace: cpa.Namespace,
	}
	if len(c.Args) > 0 || len(c.Command) == 0 {
		s.args = s.args.Child("args")
	} else {
		s.args = s.args.Child("command")
	}
	for _, target := range cpa.Targets() {
		s.targets = append(s.targets, scaleTarget{Target: target})
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
			return o.Name == t.Name || s.UID == "" && o.Namespace == s.namespace
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
