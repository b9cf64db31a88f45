package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/capacity"
	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/controller/scaling"
	"warmpool.sh/webhook/demand"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/sizing"
)

// planScaler is the CPA of a pool's placeholders.
type planScaler struct {
	detail   string
	replicas func(nodes int) int
}

// planCluster plans the pools of a cluster by what warmpool has counted of their starts.
func (o *planOptions) planCluster(cmd *cobra.Command) (*planReport, error) {
	cfg, facts, err := o.readCluster(cmd)
	if err != nil {
		return nil, err
	}
	data, err := o.ownData(demand.ConfigMapName)
	if err != nil {
		return nil, fmt.Errorf("read what is known of the demand: %w", err)
	}
	now := time.Now()
	state, err := demand.Read(data, now)
	if err != nil {
		cmd.PrintErrf("Warning: ConfigMap %s/%s: %v\n", ownNamespace, demand.ConfigMapName, err)
	}
	sizes := sizing.NewTracker(cfg).Update(facts)
	evaluator, err := policy.NewWithSizes(cfg, facts, sizes, now)
	if err != nil {
		return nil, err
	}
	scalings := evaluator.Scalings()
	report := &planReport{nodePrice: o.nodePrice}
	replaying := newProgress("Replaying")
	defer replaying.done()
	for _, of := range evaluator.Pools().All() {
		name := of.Config.Name
		known := state.Pools[name]
		if known == nil {
			cmd.PrintErrf("Warning: pool %s: nothing is known of its starts: ConfigMap %s/%s has no key of its name; the leader writes it\n", name, ownNamespace, demand.ConfigMapName)
			continue
		}
		replaying.next("pool " + name)
		pool := *o
		pool.ask(of, known, evaluator.Places(of))
		pool.scaler = scalerOf(scalings[name], sizes.Pool(name))
		plan, err := pool.planKnown(name, known)
		if err != nil {
			cmd.PrintErrf("Warning: pool %s: %v\n", name, err)
			continue
		}
		report.Pools = append(report.Pools, plan)
	}
	if len(report.Pools) == 0 {
		return nil, errors.New("no pool could be planned; to plan from a file of starts, give --history FILE")
	}
	return report, nil
}

// ask sets what is asked of a pool: by its configuration and its cluster, where no flag says otherwise.
func (o *planOptions) ask(of *placement.Pool, known *demand.Pool, places int) {
	asked := demand.SettingsOf(of.Config.Size)
	if asked.Objective == 0 && asked.WaitingHour == 0 || o.given("objective") {
		asked.Objective, asked.WaitingHour, asked.IdleHour = o.objective, 0, 0
	}
	if !o.given("min") {
		o.least = asked.Min
	}
	if !o.given("max") {
		o.most = asked.Max
	}
	if !o.given("places") {
		o.places = places
	}
	asked.LeadTime = o.leadTime
	if !o.given("lead-time") {
		o.leadTime, _ = known.LeadTime(asked)
	}
	if zone, err := time.LoadLocation(known.Zone); err == nil { // where its hours were counted; UTC for none
		o.zone = zone
	}
	o.objective, o.asked, o.consolidateAfter = asked.Objective, asked, scaling.ConsolidateAfter(of)
}

// scalerOf is the CPA of the pool's placeholders, which is taken to count the pool's nodes; nil: there is none whose numbers are known.
func scalerOf(scalers []policy.Scaling, sizes *sizing.PoolSizes) *planScaler {
	cores := 0.0
	for _, shape := range sizes.Shapes {
		cores = max(cores, sizing.Cores(shape.Offers[corev1.ResourceCPU].Allocatable))
	}
	for _, s := range scalers {
		if linear := s.Linear; linear != nil {
			return &planScaler{s.Name + ", of the pool's nodes", func(nodes int) int { return linear.Replicas(nodes, float64(nodes)*cores) }}
		}
	}
	return nil
}

// Weeks that are simulated: those to learn from, and those to judge.
const (
	weeksLearned = 4
	weeksJudged  = 4
)

// planKnown judges a pool on starts at the rates that are known of it.
func (o *planOptions) planKnown(name string, known *demand.Pool) (*poolPlan, error) {
	rates := known.Rates(o.settings())
	total := 0.0
	for _, rate := range rates {
		total += rate
	}
	if total*(weeksLearned+weeksJudged) > mostStarts {
		return nil, fmt.Errorf("%.3g starts a week are more than can be replayed", total)
	}
	starts := simulated(rates, o.zone)
	if len(starts) < 2 {
		return nil, errors.New("too few starts are known yet")
	}
	o.learnFirst = weeksLearned * 7 * 24 * time.Hour
	plan, err := o.planPool(name, starts)
	if err != nil {
		return nil, err
	}
	plan.Simulated, plan.TimeZone, plan.Starts = true, o.zone.String(), plan.Judged.Starts
	plan.setHours(known, o.settings())
	return plan, nil
}

// simulated are starts at the rates of each hour of the week, from Sunday 0 o'clock on, the same each time.
func simulated(rates [7 * 24]float64, zone *time.Location) []capacity.Start {
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // drawn the same way each time
	var starts []capacity.Start
	begin := time.Date(2024, 1, 7, 0, 0, 0, 0, zone) // a Sunday
	for week := range weeksLearned + weeksJudged {
		for hour, rate := range rates {
			if rate <= 0 {
				continue
			}
			from := begin.Add(time.Duration(week*len(rates)+hour) * time.Hour)
			for at := random.ExpFloat64() / rate; at < 1; at += random.ExpFloat64() / rate {
				starts = append(starts, capacity.Start{At: from.Add(time.Duration(at * float64(time.Hour)))})
			}
		}
	}
	return starts
}

// readCluster reads what the flags name, else the cluster of the user's kubeconfig.
func (o *planOptions) readCluster(cmd *cobra.Command) (*config.WarmPoolConfiguration, *cluster.Snapshot, error) {
	if o.clusterDir != "" {
		return o.read(cmd)
	}
	cfg, facts, err := o.readLive(cmd.Context())
	if err != nil {
		err = fmt.Errorf("%w (to plan from a file of starts, give --history FILE)", err)
	}
	return cfg, facts, err
}
