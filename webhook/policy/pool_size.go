package policy

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/demand"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/sizing"
)

// Applies to: the pools of the configuration that have a size.
// Requires: max is at least what the objective needs by the starts of other weeks, min no more nodes than the NodePools' limits leave,
// and no event that is over.
// Why: a size that cannot be had is a promise that is not kept, and no error anywhere.
var poolSize = &Rule{
	ID:       "pool-size",
	Summary:  "What size asks for can be had: max is enough for the objective by the starts known, min fits the NodePools' limits, and no event is over.",
	Fix:      "Correct size of the pool; warmpool plan shows what a promise needs.",
	Subject:  WarmPool,
	Severity: SeverityWarning,
	audit: func(a *Audit) {
		known := a.demand()
		for i, pool := range a.pools.All() {
			if pool.Config.Size != nil {
				s := sizeOf{a.about(config.Kind, "", "", pool.Config.Name), field.NewPath("pools").Index(i).Child("size"), pool, pool.Config.Size}
				s.judgeMax(a, known[pool.Config.Name])
				s.judgeMin(a)
				s.judgeEvents(a.now)
			}
		}
	},
}

// sizeOf is the size of a pool.
type sizeOf struct {
	about
	path *field.Path
	*placement.Pool
	*config.Size
}

// demand is what is known of the starts of each pool, by its name. What is damaged or not there yet is learned anew.
func (a *Audit) demand() map[string]*demand.Pool {
	for _, kept := range a.facts.ConfigMaps.All() {
		if kept.Name == demand.ConfigMapName {
			state, _ := demand.Read(kept.Data, a.now)
			return state.Pools
		}
	}
	return nil
}

func (s sizeOf) judgeMax(a *Audit, known *demand.Pool) {
	if known == nil || s.Max == 0 {
		return
	}
	settings := demand.SettingsOf(s.Size)
	settings.Max = 0
	settings.Places = a.Places(s.Pool)
	hours := known.Hours(settings)
	need := slices.Max(hours[:])
	if need <= int(s.Max) {
		return
	}
	hour := slices.Index(hours[:], need)
	s.invalid(s.path.Child("max"), s.Max, "by the starts of other weeks the pool needs %d placeholders for what it promises, on %s at %02d:00 (%s)",
		need, time.Weekday(hour/24), hour%24, s.Location()).
		withFix("Raise max, or promise less.")
}

func (s sizeOf) judgeMin(a *Audit) {
	limits, sizes := commonLimits(s.Pool), a.sizes.Pool(s.Config.Name)
	nodes, known := sizing.Nodes(sizes.Shapes, limits)
	if s.Min == nil || !known || nodes >= int(*s.Min) {
		return
	}
	var names []string
	for _, np := range s.NodePools {
		names = append(names, np.Name)
	}
	s.invalid(s.path.Child("min"), *s.Min, "each placeholder takes a node, and the limits of NodePool %s leave %d", clip(strings.Join(names, " with ")), nodes).
		withFix("Raise spec.limits of the NodePool, or lower min.")
}

func (s sizeOf) judgeEvents(now time.Time) {
	zone := s.Location()
	for i := range s.Events {
		if _, end, ok := s.Events[i].Span(zone); ok && !end.After(now) {
			s.invalid(s.path.Child("events").Index(i), s.Events[i].Name, "ended on %s: it changes nothing any more", end.In(zone).Format("2006-01-02 15:04 MST")).
				withFix("Remove the event.")
		}
	}
}
