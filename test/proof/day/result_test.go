package day_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"warmpool.sh/test/harness/simulation"
)

// proof is docs/proof.json. Durations are in seconds.
type proof struct {
	Real   realNodes `json:"real"`
	Delays delays    `json:"delays"`
	// Seed, Count and Faster say which day it is, and how much shorter than a day.
	Seed     uint64   `json:"seed"`
	Count    int      `json:"count"`
	Faster   float64  `json:"faster"`
	Variants []result `json:"variants"`
	Soak     *soaked  `json:"soak,omitempty"`
}

// realNodes are the figures of test/proof/realnodes: from a Workspace's creation to its running, and to its being bound.
type realNodes struct {
	Warm      []start `json:"warm"`
	Cold      []start `json:"cold"`
	ImageMiB  float64 `json:"imageMiB"`
	MiBSecond float64 `json:"mibPerSecond"`
}

type start struct {
	Name    string  `json:"name"`
	Bound   float64 `json:"bound"`
	Running float64 `json:"running"`
}

type delays struct {
	Boot   float64 `json:"boot"`
	Start  float64 `json:"start"`
	PullGB float64 `json:"pullGB"`
	Scale  float64 `json:"scale"`
}

// result is a day on one of the clusters.
type result struct {
	Name   variant  `json:"name"`
	Starts []landed `json:"starts"`
	// Hours are node-hours of the day by NodePool.
	Hours map[string]float64 `json:"hours"`
	// Synced is how long after its template's change all placeholders had the image, by kind.
	Synced map[string]float64 `json:"synced,omitempty"`
	// Evicted are Workspaces that had to make room.
	Evicted int `json:"evicted"`
	// Told is what warmpool's metrics say of the starts by path, and Paths what the simulation has seen.
	Told  map[string]int `json:"told,omitempty"`
	Paths map[string]int `json:"paths"`
}

// landed is the start of one Workspace; see simulation.Startup.
type landed struct {
	Workspace string  `json:"w"`
	Hour      float64 `json:"hour"` // of the day, 8 to 18
	Bound     float64 `json:"bound"`
	Running   float64 `json:"running"`
	Path      string  `json:"path"`
	Warm      bool    `json:"warm,omitempty"`
	Outside   bool    `json:"outside,omitempty"`
	// ColdOnWarm says that it had to pull where a placeholder was ready; Syncing, that not all placeholders had the
	// new image yet when it was created.
	ColdOnWarm bool `json:"coldOnWarm,omitempty"`
	Syncing    bool `json:"syncing,omitempty"`
}

// result sums the day up.
func (r *replay) result() result {
	sum := result{Name: r.variant, Hours: map[string]float64{}, Synced: map[string]float64{}, Paths: map[string]int{}}
	for _, s := range r.Book.Startups() {
		if s.Created.Before(r.began) || s.Running.IsZero() {
			continue
		}
		l := landed{
			Workspace: s.Workspace, Hour: round(8 + s.Created.Sub(r.began).Hours()*r.faster),
			Bound: round(s.Bound.Sub(s.Created).Seconds()), Running: round(s.Running.Sub(s.Created).Seconds()),
			Path: s.Path, Warm: s.Warm(), Outside: s.Outside, ColdOnWarm: s.OnWarm && s.Pulled,
		}
		changed, synced := r.changed[s.Kind], r.synced[s.Kind]
		l.Syncing = r.variant.placeholders() && s.Bound.After(changed) && !changed.IsZero() && (synced.IsZero() || s.Created.Before(synced))
		sum.Starts = append(sum.Starts, l)
		sum.Paths[s.Path]++
	}
	for kind, at := range r.synced {
		sum.Synced[kind] = round(at.Sub(r.changed[kind]).Seconds())
	}
	end := r.began.Add(r.short(workday))
	for pool, hours := range r.Book.Hours(r.began, end) {
		sum.Hours[pool] = round(hours * r.faster)
	}
	for _, e := range r.Book.Evictions() {
		if e.Workspace != "" && e.At.After(r.began) {
			sum.Evicted++
		}
	}
	return sum
}

func round(x float64) float64 { return math.Round(x*1000) / 1000 }

// count is how many starts are so.
func (r *result) count(is func(*landed) bool) int {
	n := 0
	for i := range r.Starts {
		if is(&r.Starts[i]) {
			n++
		}
	}
	return n
}

func (r *result) warm() float64 {
	return float64(r.count(func(l *landed) bool { return l.Warm })) / float64(len(r.Starts))
}

func (r *result) outside() int { return r.count(func(l *landed) bool { return l.Outside }) }

func (r *result) coldOnWarm(syncing bool) int {
	return r.count(func(l *landed) bool { return l.ColdOnWarm && l.Syncing == syncing })
}

func (r *result) seconds() []float64 {
	var all []float64
	for i := range r.Starts {
		all = append(all, r.Starts[i].Running)
	}
	return all
}

// quantile is the least of the values that a part of them does not exceed.
func quantile(values []float64, part float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(part*float64(len(sorted))))-1)]
}

// delays are those of the simulation: what real nodes have taken for a warm start and for the pull of an image of 3.5 GB,
// which theirs stands for. The boot is assumed.
func (r *realNodes) delays() simulation.Delays {
	var warm, cold []float64
	for _, s := range r.Warm {
		warm = append(warm, s.Running-s.Bound)
	}
	for _, s := range r.Cold {
		cold = append(cold, s.Running-s.Bound)
	}
	begin, pull := quantile(warm, 0.5), quantile(cold, 0.5)-quantile(warm, 0.5)
	d := simulation.DefaultDelays
	d.Start, d.PullGB = seconds(begin), seconds(pull/3.5)
	return d
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

const proofJSON = root + "/docs/proof.json"

func readProof(t *testing.T) *proof {
	t.Helper()
	text, err := os.ReadFile(proofJSON)
	require.NoError(t, err)
	p := &proof{}
	require.NoError(t, json.Unmarshal(text, p))
	return p
}

func (p *proof) write(t *testing.T) {
	t.Helper()
	text, err := json.MarshalIndent(p, "", " ")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(proofJSON, append(text, '\n'), 0o600))
}
