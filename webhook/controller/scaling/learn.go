package scaling

import (
	"time"

	"warmpool.sh/webhook/demand"
	"warmpool.sh/webhook/policy"
)

// backlog is how long nobody may have led, for the starts of that time to be made up for.
const backlog = 10 * time.Minute

// configure makes the pools those of the configuration.
func (c *Controller) configure(e *policy.Evaluator) {
	if c.config == e.Config() {
		return
	}
	c.config = e.Config()
	before, began := c.pools, c.clock(c.began)
	c.pools = map[string]*pool{}
	for i := range c.config.Pools {
		of := &c.config.Pools[i]
		p := before[of.Name]
		if p == nil {
			p = &pool{name: of.Name, since: began, wrote: c.began}
			if known := c.state.Pools[of.Name]; known != nil && known.At.After(began.Add(-backlog)) && known.At.Before(began) {
				p.since = known.At // what came since the last write of the leader before
			}
		}
		p.size, p.settings = of.Size, demand.SettingsOf(of.Size)
		if c.state.Pools[of.Name] == nil {
			c.state.Pools[of.Name] = &demand.Pool{}
		}
		p.demand = c.state.Pools[of.Name]
		c.pools[of.Name] = p
		delete(before, of.Name)
		if of.Size == nil {
			forget(of.Name) // all that is shown of a pool that is sized
		}
	}
	for name := range before {
		forget(name)
	}
}

// learn takes in a start, or what became of one.
func (c *Controller) learn(n news, now time.Time) {
	p := c.pools[n.pool]
	c.learned = true
	switch {
	case p == nil:
	case n.judged:
		was, known := c.promised[n.pod]
		if !known { // it came while another one led
			_, was.hits = p.demand.Outlook(p.settings, now)
		}
		p.demand.Judged(p.settings, now, was.hits, n.found)
		delete(c.promised, n.pod)
	case n.at.After(p.since):
		at := n.at
		if at.After(now) {
			at = now
		}
		c.promised[n.pod] = promise{p.demand.Arrived(p.settings, at), now}
	}
}
