package policy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/cpa"
	"warmpool.sh/webhook/placement"
)

// Audit is a whole cluster as the rules see it that judge more than one object.
type Audit struct {
	*Evaluator
	report

	// Placeholders are all placeholder Deployments, Workspaces the pods of Workspaces that have not ended, in the order of
	// their keys.
	Placeholders, Workspaces []*Object
	// CPAs are those that scale placeholders, or mean to, in the order of their keys.
	CPAs []*cpa.Scaler

	podsOf map[string][]*corev1.Pod // by the Deployment's key; see Pods
}

// Audit judges every placeholder, every Workspace pod and what is around them. Findings come in the order of the table
// for each object, objects by kind and key, then those of whole-cluster rules in the order of the table. objects is how
// many objects were judged by rules of their own.
func (e *Evaluator) Audit() (findings []Finding, objects int) {
	a := NewAudit(e)
	for _, o := range slices.Concat(a.Placeholders, a.Workspaces) {
		e.check(o, true)
	}
	for i, rule := range table {
		if rule.audit != nil {
			a.apply(rule, i)
		}
	}
	return a.values(), len(a.Placeholders) + len(a.Workspaces)
}

// apply runs a rule about the whole cluster. Whether it is on, and whom it exempts, goes by what each finding is about.
func (a *Audit) apply(rule *Rule, index int) {
	before := len(a.findings)
	rule.audit(a)
	kept := a.findings[:before]
	for _, f := range a.findings[before:] {
		action := a.actions[""][index]
		if actions, ok := a.actions[f.Pool]; ok {
			action = actions[index]
		}
		if action != config.Off && !a.exempts(rule, f.Object.Namespace, f.Object.Name) {
			f.complete(rule, action)
			kept = append(kept, f)
		}
	}
	a.findings = kept
}

// NewAudit looks at the whole cluster.
func NewAudit(e *Evaluator) *Audit {
	a := &Audit{Evaluator: e}
	pools := map[string]*placement.Pool{}
	for definition, d := range e.facts.Deployments.Defined() {
		if e.IsPlaceholder(d) {
			o := e.Placeholder(d, d.Namespace)
			o.Definition, o.report = definition, &a.report
			a.Placeholders, pools[o.key()] = append(a.Placeholders, o), o.Pool
		}
	}
	for definition, pod := range e.facts.Pods.Defined() {
		if !Ended(pod) && e.IsWorkspace(pod.Labels) {
			o := e.Pod(pod, pod.Namespace)
			o.Definition, o.report = definition, &a.report
			a.Workspaces = append(a.Workspaces, o)
		}
	}
	a.CPAs = cpa.Find(e.facts, e.config.Placeholders.Namespace, pools)
	return a
}

// about says which object of which pool findings are about.
func (a *Audit) about(kind, namespace, name, pool string) about {
	return about{Ref{Kind: kind, Namespace: namespace, Name: name}, pool, &a.report}
}

// unverified reports what is about no object, and so about no field.
func (a *Audit) unverified(format string, args ...any) *Finding {
	f := about{report: &a.report}.notVerified(namespacePath, format, args...)
	f.Error.Field = ""
	return f
}

// unread reports a kind that could not be read, and tells whether that is so.
func (a *Audit) unread(kinds string, facts kind) bool {
	if !facts.Known() {
		a.unverified("%s: %s", kinds, facts.Reason())
	}
	return !facts.Known()
}

// key of an object: namespace/name.
func (r Ref) key() string { return r.Namespace + "/" + r.Name }

// Of are the placeholders of a pool.
func (a *Audit) Of(pool string) []*Object {
	return slices.DeleteFunc(slices.Clone(a.Placeholders), func(o *Object) bool { return o.pool != pool })
}

// Nodes are the nodes that carry the pool's label, in the order of their names.
func (a *Audit) Nodes(pool *placement.Pool) []*corev1.Node {
	var found []*corev1.Node
	for _, node := range a.facts.Nodes.All() {
		if pool.HasNode(node) {
			found = append(found, node)
		}
	}
	return found
}
