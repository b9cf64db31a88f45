package webhook

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/sizing"
)

// Evaluators keeps the Evaluator in force: a new one is made, off the request path, whenever the configuration or the
// Snapshot changes and when an exemption ends.
type Evaluators struct {
	// Seen, if set before the first Observe, is told which nodes stand for the types of each pool.
	Seen func(pools map[string][]*corev1.Node)
	// Changed, set before the first Observe, are told that another Evaluator is in force; they must not block.
	Changed []func()

	current atomic.Pointer[policy.Evaluator]
	shapes  atomic.Pointer[sizing.Sizes] // of current

	mu     sync.Mutex
	config *config.WarmPoolConfiguration
	facts  *cluster.Snapshot
	sizes  *sizing.Tracker // of config
	expiry *time.Timer
}

// Current is the Evaluator in force; nil until both configuration and facts are there.
func (s *Evaluators) Current() *policy.Evaluator { return s.current.Load() }

// Sizes are those that Current judges by; nil until there is one.
func (s *Evaluators) Sizes() *sizing.Sizes { return s.shapes.Load() }

// Configure puts a validated configuration in force; after an error the one before stays.
func (s *Evaluators) Configure(cfg *config.WarmPoolConfiguration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.build(cfg, sizing.NewTracker(cfg))
}

// Observe puts a Snapshot in force.
func (s *Evaluators) Observe(facts *cluster.Snapshot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.facts = facts
	return s.build(s.config, s.sizes)
}

// build makes the Evaluator for a configuration, with a Tracker of it, and the facts, and puts all of them in force
// together. There is nothing to build while one is missing.
func (s *Evaluators) build(cfg *config.WarmPoolConfiguration, tracker *sizing.Tracker) error {
	if cfg == nil || s.facts == nil {
		s.config, s.sizes = cfg, tracker
		return nil
	}
	now := time.Now()
	sizes := tracker.Update(s.facts)
	evaluator, err := policy.NewWithSizes(cfg, s.facts, sizes, now)
	if err != nil {
		return fmt.Errorf("keep the rules as they were: %w", err)
	}
	s.config, s.sizes = cfg, tracker
	s.shapes.Store(sizes)
	s.current.Store(evaluator)
	if s.Seen != nil {
		s.Seen(sizes.Seen(s.facts))
	}
	for _, changed := range s.Changed {
		changed()
	}
	if s.expiry != nil {
		s.expiry.Stop()
	}
	if next, ok := cfg.NextExpiry(now); ok {
		// The same inputs made an Evaluator just now, so they make one again.
		s.expiry = time.AfterFunc(next.Sub(now), func() { _ = s.rebuild() })
	}
	return nil
}

// rebuild makes the Evaluator anew, for a later time.
func (s *Evaluators) rebuild() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.build(s.config, s.sizes)
}
