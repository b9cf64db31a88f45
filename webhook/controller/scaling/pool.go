package scaling

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/demand"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/redact"
	"warmpool.sh/webhook/sizing"
)

// telling is the time between two Events of one reason about a pool.
const telling = time.Hour

// pool is one that is followed.
type pool struct {
	name     string
	size     *config.Size // nil: somebody else sets it
	settings *demand.Settings
	demand   *demand.Pool
	leads    leads
	retry    retry
	// since is from when on starts count: those before were counted by the leader before.
	since time.Time
	// wrote is when a scale was written last, perhaps by the leader before, by the machine's clock; leftAlone until when none is, and why.
	wrote, leftAlone time.Time
	whyAlone         string
	// last is the decision before.
	last decision
	// told is when an Event was made last, by its reason.
	told map[string]time.Time
	// faults are those that were logged last, by what was to be done.
	faults map[string]string
}

// step finds the size of the pool, shows it, and writes it where it is to.
func (p *pool) step(ctx context.Context, c *Controller, e *policy.Evaluator, sizes *sizing.PoolSizes, of *placement.Pool, have *placeholders, now time.Time) {
	p.settings.LeadTime, p.settings.Places, p.settings.ConsolidateAfter = usualLead, e.Places(of), ConsolidateAfter(of)
	held := p.last.reason == heldByLimit || p.last.reason == heldByPending
	for _, lead := range p.leads.observe(e, have, held, now, c.clock) {
		p.demand.Warmed(lead)
		c.learned = true
	}
	p.demand.Underway(p.settings, have.ages)
	if p.size == nil {
		p.demand.Keep(p.settings, now)
		p.showDemand(now)
		return
	}
	p.demand.Resume(now, have.replicas)
	s := &situation{placeholders: have, now: now, wanted: p.demand.Keep(p.settings, now)}
	_, s.longest = p.demand.LeadTime(p.settings)
	s.least = p.leastKnown(have)
	d := p.decide(ctx, c, e, sizes, of, s)
	p.showDemand(now)
	wantedPlaceholders.WithLabelValues(p.name).Set(float64(s.wanted))
	hadSize.WithLabelValues(p.name).Set(float64(have.warm))
	if p.size.Mode == config.Apply {
		d = p.apply(ctx, c, e, s, d)
	} else {
		p.recommend(c, s, d)
	}
	if p.size.Mode != config.Apply || d.size < s.wanted {
		p.demand.Withheld()
	}
	promisedSize.WithLabelValues(p.name).Set(float64(d.size))
	showHeld(p.name, d.reason)
	if p.size.Mode == config.Apply && d.reason != heldByNothing {
		p.tell(c, have, now, corev1.EventTypeWarning, "PoolHeld", fmt.Sprintf("pool %s: %d placeholders wanted, %d kept: %s", p.name, s.wanted, d.size, d.why), d.reason)
	}
	p.last = d
}

// leastKnown is what a pool had when it was first sized: until it was watched for some days, no one knows that less is enough.
func (p *pool) leastKnown(have *placeholders) int {
	if p.demand.Found == nil && len(have.deployments) > 0 {
		p.demand.Found = new(have.replicas)
	}
	if p.demand.Found == nil || !p.demand.Learning(p.settings) {
		return 0
	}
	if p.settings.Max > 0 {
		return min(*p.demand.Found, p.settings.Max)
	}
	return *p.demand.Found
}

// decide caps what is wanted. What Karpenter counts against limits is asked for only where nodes are missing.
func (p *pool) decide(ctx context.Context, c *Controller, e *policy.Evaluator, sizes *sizing.PoolSizes, of *placement.Pool, s *situation) decision {
	if max(s.wanted, s.least) > s.bound && len(of.NodePools) > 0 {
		used, err := c.nodesInUse(ctx, of.NodePools[0].APIVersion, s.now)
		p.complain(c, "limits", err)
		if err == nil {
			if s.room, s.limits = roomOf(of, sizes, used); s.room != nil {
				*s.room += freeNodes(e, of, s.placeholders, c.occupants)
			}
		}
	}
	return p.retry.decide(s)
}

// apply writes the size, unless somebody else does.
func (p *pool) apply(ctx context.Context, c *Controller, e *policy.Evaluator, s *situation, d decision) decision {
	alone := func(why string) decision { return decision{s.replicas, heldByScaler, why} }
	if len(s.deployments) == 0 {
		return alone("the pool has no placeholder Deployment in the placeholders' namespace")
	}
	if why := cpaOf(e, s.placeholders); why != "" {
		return alone(why)
	}
	i, replicas, changes := next(s.placeholders, d.size)
	switch {
	case s.now.Before(p.leftAlone) && p.leftAlone.Sub(s.now) <= truce:
		return alone(p.whyAlone)
	case !changes, time.Since(p.wrote) < 2*c.interval:
		return d
	}
	before := p.wrote
	why, err := p.write(ctx, c, s, s.deployments[i], replicas)
	switch {
	case why != "":
		return alone(why)
	case apierrors.IsConflict(err), apierrors.IsNotFound(err): // something has changed: the next step sees it
	default:
		p.complain(c, "scale", err)
	}
	if err == nil && p.wrote != before {
		c.log.V(1).Info("pool resized", "pool", p.name, "namespace", s.deployments[i].Namespace, "name", s.deployments[i].Name, "replicas", replicas)
		p.tellResize(c, s, d, "PoolResized", "has")
	}
	return d
}

// write sets the replicas of one placeholder, unless it finds somebody else who does: why says so then.
func (p *pool) write(ctx context.Context, c *Controller, s *situation, of *appsv1.Deployment, replicas int) (why string, err error) {
	if why, err = hpaOf(ctx, c.reader, s.placeholders); why != "" || err != nil {
		return why, err
	}
	var d appsv1.Deployment // as it is now, with its managed fields
	if err := c.reader.Get(ctx, client.ObjectKeyFromObject(of), &d); err != nil {
		return "", fmt.Errorf("read Deployment %s/%s: %w", of.Namespace, of.Name, err)
	}
	until, why := rival(&d, s.now, c.clock)
	if why != "" {
		p.leftAlone, p.whyAlone = until, why
		return why, nil
	}
	if int(policy.ReplicasOf(&d)) == replicas { // what was written has not come by the watch yet
		return "", nil
	}
	p.wrote = time.Now() // a write that fails may have been taken all the same
	if err := c.scale(ctx, &d, replicas); err != nil {
		return "", err
	}
	resizes.WithLabelValues(p.name).Inc()
	return "", nil
}

// complain logs a fault once.
func (p *pool) complain(c *Controller, what string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != p.faults[what] {
		c.log.Error(redact.Error(err), "pool not sized, trying again", "pool", p.name, "what", what)
	}
	if p.faults == nil {
		p.faults = map[string]string{}
	}
	p.faults[what] = text
}

// ConsolidateAfter is how long Karpenter keeps an empty node of the pool.
func ConsolidateAfter(of *placement.Pool) time.Duration {
	longest := time.Duration(0)
	for _, np := range of.NodePools {
		if after, err := time.ParseDuration(np.Disruption.ConsolidateAfter); err == nil {
			longest = max(longest, after)
		}
	}
	return longest
}
