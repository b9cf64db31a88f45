package demand

import (
	"math"
	"time"
)

const hoursOfWeek = 7 * 24

// These say how fast is learned and forgotten. The figures hardly depend on them (TestGoals has the margins).
const (
	fade       = 0.85             // of what was counted, a week later
	trust      = 8.0              // hours that the prior of an hour stands for
	recency    = 20 * time.Minute // age at which a start counts a third of a new one
	usual      = 7.0              // starts that the rate of other weeks stands for, beside those of late
	leastOf    = 0.3              // below which nothing of late lowers the rate
	learning   = 0.1              // by which odds move at a start
	mostShift  = 6.0              // in either direction
	mostRise   = 1.0              // in an hour
	foundation = 72.0             // hours after which hits are held against the objective
	mostGap    = 15 * time.Minute // without a word after which nothing is known of the time between
	fadeOfHits = 0.998            // of each hit counted, at the next
	clumps     = 1.2              // variance of starts over their mean, where their rate is known: some come together
)

// Pool is what is known of a pool's starts. The zero value knows nothing.
type Pool struct {
	// At is the time up to which it was told.
	At time.Time `json:"at"`
	// Starts and Seen are, for each hour of the week, starts and hours of watching; both fade.
	Starts week `json:"starts"`
	Seen   week `json:"seen"`
	// Hour is the one that is not over.
	Hour hour `json:"hour"`
	// Recent and Expected are the starts of late, those that came and those that other weeks let expect.
	Recent   number `json:"recent"`
	Expected number `json:"expected"`
	// Leads are the last lead times in seconds.
	Leads []number `json:"leads,omitempty"`
	// Shift moves the quantile: what was had was less (above 0) than what was promised, or more.
	Shift number `json:"shift"`
	// Zone is where the hours of the week were counted, and Found how many placeholders there were when the pool was first sized.
	Zone  string `json:"zone,omitempty"`
	Found *int   `json:"found,omitempty"`
	// Counted starts of late were promised so many hits, and had so many.
	Counted  number `json:"counted"`
	Promised number `json:"promised"`
	Had      number `json:"had"`

	forecast forecast
	// underway is how long placeholders have been on their way that are not warm yet.
	underway []time.Duration
	// kept are decisions of late; capped tells that Max is in the way of more, promise what the last one promises a start.
	kept    []kept
	capped  bool
	promise float64
}

type week [hoursOfWeek]number

// hour is an hour of the week that is watched.
type hour struct {
	Of     int    `json:"of"`
	Starts number `json:"starts"`
	Seen   number `json:"seen"`
	// Rise is by how much it has moved Shift.
	Rise number `json:"rise,omitempty"`
}

type kept struct {
	at     time.Time
	places int
}

// advance lets time pass. A clock that was put back stands still until it has caught up, but for an hour at most.
func (p *Pool) advance(s *Settings, now time.Time) {
	p.countIn(s.zone(), now)
	passed := now.Sub(p.At)
	switch {
	case passed > mostGap || passed < -time.Hour:
		p.close(s.hourOf(now))
		p.Recent, p.Expected, p.At = 0, 0, now
		p.kept = nil
		return
	case passed <= 0:
		return
	}
	of := s.hourOf(now)
	if of != p.Hour.Of {
		p.close(of)
	}
	if s.event(now) == nil {
		p.Hour.Seen += number(passed.Hours())
		keep := math.Exp(-float64(passed) / float64(recency))
		p.Recent *= number(keep)
		p.Expected = p.Expected*number(keep) + number((1-keep)*recency.Hours()*p.fit(s).rates[of].mean())
	}
	p.At = now
}

// close adds the hour to its like, and begins another.
func (p *Pool) close(next int) {
	h := p.Hour
	if h.Seen > 0 {
		faded := number(math.Pow(fade, min(float64(h.Seen), 1)))
		p.Starts[h.Of] = p.Starts[h.Of]*faded + h.Starts
		p.Seen[h.Of] = p.Seen[h.Of]*faded + h.Seen
	}
	p.Hour = hour{Of: next}
	p.forecast.fitted = false
}

// Started tells of a start and whether it found a place.
func (p *Pool) Started(s *Settings, now time.Time, found bool) {
	p.Judged(s, now, p.Arrived(s, now), found)
}

// Arrived tells of a start, and returns which chance of a place it was promised. Those of events teach nothing of other weeks.
func (p *Pool) Arrived(s *Settings, now time.Time) (promised float64) {
	p.advance(s, now)
	if s.event(now) == nil {
		p.Hour.Starts++
		p.Recent++
	}
	return p.promise
}

// Judged tells whether a start that had arrived has found a place, which is known once its Workspace runs.
func (p *Pool) Judged(s *Settings, now time.Time, promised float64, found bool) {
	p.advance(s, now)
	if s.event(now) != nil || s.Objective == 0 && s.WaitingHour == 0 {
		return
	}
	hit := number(0)
	if found {
		hit = 1
	}
	p.Counted = p.Counted*fadeOfHits + 1
	p.Promised = p.Promised*fadeOfHits + number(promised)
	p.Had = p.Had*fadeOfHits + hit
	if s.Objective == 0 || p.fit(s).seen < foundation || p.capped {
		return
	}
	move := number(learning * (s.Objective - float64(hit)))
	if !found { // one burst is no reason to keep more for weeks
		move = max(0, min(move, mostRise-p.Hour.Rise))
	}
	p.Hour.Rise += move
	p.Shift = min(max(p.Shift+move, -mostShift), mostShift)
}
