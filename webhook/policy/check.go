package policy

import (
	"slices"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// Mutate fills what is absent, rule by rule, in the Object, and returns the operations that do the same to its JSON. What
// it replaced is in Replaced afterwards.
func (e *Evaluator) Mutate(o *Object) placement.Patch {
	var patch placement.Patch
	actions := e.actionsOf(o)
	for _, i := range o.rules {
		rule := table[i]
		if rule.mutate == nil || !e.applies(rule, actions[i], o) {
			continue
		}
		before := len(o.replaced.findings)
		rule.mutate(o, &patch)
		o.replaced.complete(before, rule, actions[i])
	}
	return patch
}

// Check returns the findings about the Object in the order of the table.
func (e *Evaluator) Check(o *Object) []Finding {
	o.own.findings = nil
	o.report = &o.own
	e.check(o, false)
	return o.own.values()
}

// check applies the rules about the Object, with or without those for audits only.
func (e *Evaluator) check(o *Object, audit bool) {
	o.judged = judged{}
	actions := e.actionsOf(o)
	for _, i := range o.rules {
		rule := table[i]
		if rule.check == nil || rule.AuditOnly && !audit || !e.applies(rule, actions[i], o) {
			continue
		}
		before := len(o.findings)
		rule.check(o)
		o.complete(before, rule, actions[i])
	}
}

// CheckUpdate returns the findings about an updated Object. What the old one had already, and no less of, is not
// denied but warned about: old violations must not block labels, finalizers, scaling and step-by-step repair. Neither is
// anything denied of an object that is being deleted.
func (e *Evaluator) CheckUpdate(o, old *Object) []Finding {
	findings := e.Check(o)
	passes, excuse := isLeaving(o), e.excuse(o, old)
	var had map[string]int64
	for i := range findings {
		f := &findings[i]
		if f.Action != config.Deny {
			continue
		}
		if had == nil {
			had = e.amounts(excuse)
		}
		before, same := had[f.identity()]
		excused := f.short != nil && excuse != nil && f.short.before(excuse)
		if passes || same && f.amount <= before || excused {
			f.Action = config.Warn
		}
	}
	return findings
}

// excuse is the old object whose faults the new one may keep; nil: none. What becomes a placeholder, or leaves 0 replicas,
// is judged anew: else faults could come in where they are not in force. At 0 replicas the old one is taken as if it had
// been there too, so that scaling down is no fault.
func (e *Evaluator) excuse(o, old *Object) *Object {
	switch {
	case old.Deployment == nil:
		return old
	case !e.IsPlaceholder(old.Deployment), isPaused(old.Deployment) && !isPaused(o.Deployment):
		return nil
	case isPaused(o.Deployment) && !isPaused(old.Deployment):
		scaled := *old.Deployment
		scaled.Spec.Replicas = new(int32)
		return e.Placeholder(&scaled, old.Namespace)
	default:
		return old
	}
}

// amounts are the violations that the rules held against the object before; nil had none. Findings that are capped do not
// excuse: what held in part may now not hold at all.
func (e *Evaluator) amounts(old *Object) map[string]int64 {
	had := map[string]int64{}
	if old == nil {
		return had
	}
	findings := e.Check(old)
	for i := range findings {
		if findings[i].atMost == "" {
			id := findings[i].identity()
			had[id] = max(had[id], findings[i].amount)
		}
	}
	return had
}

func isLeaving(o *Object) bool {
	if o.Deployment == nil {
		return o.Pod.DeletionTimestamp != nil
	}
	return o.Deployment.DeletionTimestamp != nil
}

func (e *Evaluator) actionsOf(o *Object) []config.Action { return e.actions[o.pool] }

// applies tells whether a rule is on and the object not exempt from it; a Workspace pod, whose name is generated, goes by
// its Workspace's name too.
func (e *Evaluator) applies(rule *Rule, action config.Action, o *Object) bool {
	if o.Pod != nil {
		return action != config.Off && !e.exempts(rule, o.Namespace, o.Name, o.Pod.Labels[config.WorkspaceLabel])
	}
	return action != config.Off && !e.exempts(rule, o.Namespace, o.Name)
}

// exempts looks for an exemption of what goes by any of the names.
func (e *Evaluator) exempts(rule *Rule, namespace string, names ...string) bool {
	return slices.ContainsFunc(e.exemptions, func(x config.Exemption) bool {
		return x.Namespace == namespace && slices.Contains(x.Rules, rule.ID) && (x.Name == "" || slices.Contains(names, x.Name))
	})
}
