package scaling

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// showDemand shows what is known of the pool's demand.
func (p *pool) showDemand(now time.Time) {
	lead, _ := p.demand.LeadTime(p.settings)
	leadTime.WithLabelValues(p.name).Set(lead.Seconds())
	expected, _ := p.demand.Outlook(p.settings, now)
	expectedStarts.WithLabelValues(p.name).Set(expected)
	if promised, had, ok := p.demand.Hits(); ok && p.size != nil {
		promisedHits.WithLabelValues(p.name).Set(promised)
		hadHits.WithLabelValues(p.name).Set(had)
	}
}

// recommend tells the size that the pool should have.
func (p *pool) recommend(c *Controller, s *situation, d decision) {
	if d.size != s.replicas && len(s.deployments) > 0 {
		p.tellResize(c, s, d, "PoolSizeRecommended", "should have")
	}
}

// tellResize tells of a new size and what it comes from.
func (p *pool) tellResize(c *Controller, s *situation, d decision, reason, verb string) {
	expected, promise := p.demand.Outlook(p.settings, s.now)
	lead, _ := p.demand.LeadTime(p.settings)
	note := fmt.Sprintf("pool %s %s %d placeholders, not %d: other weeks let expect %.1f starts an hour now, a node takes %s to get warm", p.name, verb, d.size, s.replicas, expected, lead.Round(time.Second))
	if event := p.settings.At(s.now.Add(lead)); event != nil {
		note += fmt.Sprintf(", and %d start in event %s", event.Starts, event.Name)
	}
	note += fmt.Sprintf("; the next Workspace finds a place with a chance of %.0f %%", 100*promise)
	if p.demand.Learning(p.settings) {
		note += "; it was watched for less than three days, so that it does not get smaller than it was"
	}
	if s.wanted != d.size && d.reason != heldByNothing {
		note += fmt.Sprintf(" (%d are wanted: %s)", s.wanted, d.why)
	}
	p.tell(c, s.placeholders, s.now, corev1.EventTypeNormal, reason, note, "")
}

// tell makes an Event on the first placeholder, at most once an hour for each reason and cause.
func (p *pool) tell(c *Controller, have *placeholders, now time.Time, kind, reason, note, cause string) {
	last, told := p.told[reason+cause]
	if told && now.Sub(last) < telling && !now.Before(last) || len(have.deployments) == 0 {
		return
	}
	if p.told == nil {
		p.told = map[string]time.Time{}
	}
	p.told[reason+cause] = now
	c.events.Eventf(have.deployments[0], nil, kind, reason, "SizePool", "%s", note)
}
