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

// ConfigMapName is the ConfigMap in warmpool's own namespace that keeps the State.
const ConfigMapName = "warmpool-demand"

// version is that of a pool as it is written.
const version = 1

// State is what is known of all pools, by their names. It is kept in the data of a ConfigMap: under each pool's name an object in
// JSON, which has its own version.
type State struct{ Pools map[string]*Pool }

// mostBytes is what is written at most: some 350 pools.
const mostBytes = 900 << 10

// forgotten is how long a pool is kept that nothing is reported of: one may be gone from the configuration for a while.
const forgotten = 28 * 24 * time.Hour

// Write gives the data of the ConfigMap, which has other data before. Numbers have four digits: what is counted is no better than
// that. What a newer warmpool wrote stays. The error names pools for which there is no room.
func (s *State) Write(before map[string]string, now time.Time) (map[string]string, error) {
	data := map[string]string{}
	size := 0
	for name, text := range before {
		if isNewer(text) {
			data[name] = text
			size += len(name) + len(text)
		}
	}
	var left []string
	for _, name := range slices.Sorted(maps.Keys(s.Pools)) {
		pool := s.Pools[name]
		if _, keep := data[name]; keep || pool.At.Before(now.Add(-forgotten)) {
			continue
		}
		text, err := json.Marshal(written{Version: version, Pool: pool})
		if err != nil {
			return nil, fmt.Errorf("write what is known of the demand of pool %q: %w", name, err)
		}
		if size+len(name)+len(text) > mostBytes {
			left = append(left, name)
			continue
		}
		size += len(name) + len(text)
		data[name] = string(text)
	}
	if len(left) > 0 {
		return data, fmt.Errorf("a ConfigMap has no room for what is known of the demand of %d pools, from %q on: use fewer pools", len(left), left[0])
	}
	return data, nil
}

// written is a pool as it is written.
type written struct {
	Version int `json:"version"`
	*Pool
}

// Read reads what Write gave. What is damaged is left out and named in the error, which is no reason to stop: it is learned anew.
// So is what a newer warmpool wrote (ErrNewer), which stays as it was written.
func Read(data map[string]string, now time.Time) (*State, error) {
	state := &State{Pools: map[string]*Pool{}}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(data)) {
		pool, err := readPool(data[name], now)
		switch {
		case errors.Is(err, ErrNewer):
			errs = append(errs, fmt.Errorf("pool %q: %w", name, err))
		case err != nil:
			errs = append(errs, fmt.Errorf("pool %q: what was known of its demand is damaged, and learned anew: %w", name, err))
		default:
			state.Pools[name] = pool
		}
	}
	return state, errors.Join(errs...)
}

func readPool(text string, now time.Time) (*Pool, error) {
	of, err := versionOf(text)
	switch {
	case err != nil:
		return nil, err
	case of > version:
		return nil, fmt.Errorf("%w: it has version %d, and this one knows up to %d", ErrNewer, of, version)
	case of < 1:
		return nil, errors.New("it has no version")
	}
	read := written{Pool: &Pool{}}
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		return nil, err
	}
	return read.Pool, read.check(now)
}

func versionOf(text string) (int, error) {
	var of struct {
		Version int `json:"version"`
	}
	err := json.Unmarshal([]byte(text), &of)
	return of.Version, err
}

func isNewer(text string) bool {
	of, err := versionOf(text)
	return err == nil && of > version
}

// ErrNewer says that what is known of a pool is from a newer warmpool.
var ErrNewer = errors.New("what is known of the demand was written by a newer warmpool, and is left as it is; this one learns anew and keeps nothing: use the newer one")

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
	case p.Found != nil && (*p.Found < 0 || *p.Found > mostCount):
		return fmt.Errorf("found: %d is no count", *p.Found)
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
