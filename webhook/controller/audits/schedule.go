package audits

import (
	"time"

	"warmpool.sh/webhook/policy"
)

const (
	// settle is how long after a change an audit starts: what somebody applies comes object by object, and an audit in
	// between would report faults that are none.
	settle = 5 * time.Second
	// pause is the least time between two audits, unless auditInterval is shorter: changes may never end.
	pause = 30 * time.Second
)

// schedule says when to audit. The zero value: at once.
type schedule struct {
	last           *policy.Evaluator // that the last audit went by; nil: there was none
	started, ended time.Time         // of the last audit
	changed        time.Time         // when a change since then was first seen, or why else not to wait; zero: none
}

// due is when the next audit is to start, by the Evaluator in force and the configuration in it.
func (s *schedule) due(e *policy.Evaluator, now time.Time) time.Time {
	if s.last == nil {
		return now
	}
	if s.changed.IsZero() && matters(s.last, e) {
		s.changed = now
	}
	interval := e.Config().AuditInterval.Duration
	at := s.started.Add(interval)
	if s.changed.IsZero() {
		return at
	}
	soon := s.changed.Add(settle)
	if earliest := s.ended.Add(min(pause, interval)); soon.Before(earliest) {
		soon = earliest
	}
	if soon.Before(at) {
		return soon
	}
	return at
}

// done notes an audit. One that failed is tried again as if something had changed.
func (s *schedule) done(e *policy.Evaluator, started, ended time.Time, ok bool) {
	*s = schedule{last: e, started: started, ended: ended}
	if !ok {
		s.changed = ended
	}
}

// matters reports whether something has changed for which the next regular audit is too late.
func matters(before, now *policy.Evaluator) bool {
	a, b := before.Facts(), now.Facts()
	return before.Config() != now.Config() ||
		b.Deployments.Differs(a.Deployments) || b.Templates.Differs(a.Templates) || b.NodePools.Differs(a.NodePools) ||
		b.PriorityClasses.Differs(a.PriorityClasses) || b.DaemonSets.Differs(a.DaemonSets) || b.Namespaces.Differs(a.Namespaces) ||
		b.LimitRanges.Differs(a.LimitRanges) || b.RuntimeClasses.Differs(a.RuntimeClasses)
}
