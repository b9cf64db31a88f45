package demand

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
)

// version is that of the state as it is written.
const version = 1

// State is what is known of all pools, by their names.
type State struct {
	Version int              `json:"version"`
	Pools   map[string]*Pool `json:"pools"`
}

// Write is the state as JSON. Its numbers have four digits: what is counted is no better than that.
func (s *State) Write() ([]byte, error) {
	s.Version = version
	return json.Marshal(s)
}

// Read reads what Write wrote. Pools that are damaged are left out and named in the error, which is no reason to stop: what is
// left out is learned anew. ErrNewer is one: what a newer warmpool knows must not be written over.
func Read(data []byte, now time.Time) (*State, error) {
	state := &State{Pools: map[string]*Pool{}}
	var written struct {
		Version int                        `json:"version"`
		Pools   map[string]json.RawMessage `json:"pools"`
	}
	if len(data) == 0 {
		return state, nil
	}
	if err := json.Unmarshal(data, &written); err != nil {
		return state, fmt.Errorf("what was known of the demand is damaged, and learned anew: %w", err)
	}
	if written.Version > version {
		return state, fmt.Errorf("%w: version %d, and this one knows up to %d", ErrNewer, written.Version, version)
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(written.Pools)) {
		pool := &Pool{}
		err := json.Unmarshal(written.Pools[name], pool)
		if err == nil {
			err = pool.check(now)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("what was known of the demand of pool %q is damaged, and learned anew: %w", name, err))
			continue
		}
		state.Pools[name] = pool
	}
	return state, errors.Join(errs...)
}

// ErrNewer says that the state is from a newer warmpool.
var ErrNewer = errors.New("what is known of the demand was written by a newer warmpool")

// mostCount bounds what a count can be in earnest.
const mostCount = 1e7

func (p *Pool) check(now time.Time) error {
	lists := map[string][]number{
		"starts": p.Starts[:], "seen": p.Seen[:], "leads": p.Leads,
		"hour": {p.Hour.Starts, p.Hour.Seen}, "recent": {p.Recent, p.Expected}, "hits": {p.Counted, p.Promised, p.Had},
	}
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		for _, n := range lists[name] {
			if !(n >= 0 && n <= mostCount) {
				return fmt.Errorf("%s: %v is no count", name, float64(n))
			}
		}
	}
	switch {
	case p.Hour.Of < 0 || p.Hour.Of >= hoursOfWeek:
		return fmt.Errorf("hour.of: %d is no hour of the week", p.Hour.Of)
	case len(p.Leads) > mostLeads:
		return fmt.Errorf("leads: %d, and at most %d are kept", len(p.Leads), mostLeads)
	case math.Abs(float64(p.Shift)) > mostShift:
		return fmt.Errorf("shift: %v is beyond ±%v", float64(p.Shift), mostShift)
	case math.Abs(float64(p.Hour.Rise)) > mostCount:
		return fmt.Errorf("hour.rise: %v is no move", float64(p.Hour.Rise))
	case p.At.After(now.Add(time.Hour)):
		return fmt.Errorf("at: %s is in the future", p.At.Format(time.RFC3339))
	}
	return nil
}

// number is written with four digits.
type number float64

// MarshalJSON writes the number.
func (n number) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(n), 'g', 4, 64), nil
}
