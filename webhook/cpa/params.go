package cpa

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"warmpool.sh/webhook/sizing"
)

// Params are CPA's parameters as it takes them, of one of the two modes.
type Params struct {
	Linear *sizing.Linear
	Ladder *Ladder
	// IncludeUnschedulable tells that nodes count which take no pods.
	IncludeUnschedulable bool
	// WantsZero tells that somebody wrote min 0, which linear mode reads as 1.
	WantsZero bool
	// Oddities are what CPA ignores in silence, one clause each.
	Oddities []string
}

// Replicas are what CPA sets at so many nodes with so many cores in all.
func (p *Params) Replicas(nodes int, cores float64) int {
	if p.Linear != nil {
		return p.Linear.Replicas(nodes, cores)
	}
	return p.Ladder.replicas(nodes, cores)
}

// Most is the largest number of replicas that CPA sets; 0: it is not bounded, or not known.
func (p *Params) Most() int {
	switch {
	case p == nil:
		return 0
	case p.Linear != nil:
		return p.Linear.Max
	default:
		return p.Ladder.most()
	}
}

// ByCores tells that the number of cores counts.
func (p *Params) ByCores() bool {
	return p.Linear != nil && p.Linear.CoresPerReplica > 0 || p.Ladder != nil && len(p.Ladder.Cores) > 0
}

// Equal tells whether both mean the same.
func (p *Params) Equal(other *Params) bool {
	a, b := *p, *other
	a.Oddities, b.Oddities = nil, nil
	return reflect.DeepEqual(a, b)
}

// String writes the parameters as they stand in a ConfigMap.
func (p *Params) String() string {
	mode, value := "linear", any(p.Linear)
	if p.Ladder != nil {
		mode, value = "ladder", map[string]any{"coresToReplicas": p.Ladder.Cores, "nodesToReplicas": p.Ladder.Nodes}
	}
	encoded, err := json.Marshal(value)
	if err != nil { // numbers and booleans only
		return mode
	}
	return fmt.Sprintf("%s %s", mode, clip(string(encoded)))
}

// Words writes the parameters down for people.
func (p *Params) Words() string {
	if l := p.Ladder; l != nil {
		return fmt.Sprintf("ladder with %d steps by nodes and %d by cores, up to %d", len(l.Nodes), len(l.Cores), l.most())
	}
	var parts []string
	l := p.Linear
	for _, ratio := range []struct {
		name  string
		value float64
	}{{"coresPerReplica", l.CoresPerReplica}, {"nodesPerReplica", l.NodesPerReplica}, {"min", float64(l.Min)}, {"max", float64(l.Max)}} {
		if ratio.value != 0 {
			parts = append(parts, fmt.Sprintf("%s %g", ratio.name, ratio.value))
		}
	}
	if l.PreventSinglePointFailure {
		parts = append(parts, "preventSinglePointFailure")
	}
	return strings.Join(parts, ", ")
}

// Parse reads parameters as CPA 1.10 does; fault says why it would not take them, mode where that is, if in one.
func Parse(data map[string]string) (params *Params, mode, fault string) {
	if len(data) != 1 {
		return nil, "", fmt.Sprintf("CPA wants one key, linear or ladder, and nothing else; there are %d", len(data))
	}
	for mode = range data { // one
	}
	switch mode {
	case "linear":
		params, fault = parseLinear([]byte(data[mode]))
	case "ladder":
		params, fault = parseLadder([]byte(data[mode]))
	default:
		fault = "CPA knows the modes linear and ladder"
	}
	return params, mode, fault
}

func parseLinear(text []byte) (params *Params, fault string) {
	var p struct {
		CoresPerReplica           float64 `json:"coresPerReplica"`
		NodesPerReplica           float64 `json:"nodesPerReplica"`
		Min                       *int    `json:"min"`
		Max                       int     `json:"max"`
		PreventSinglePointFailure bool    `json:"preventSinglePointFailure"`
		IncludeUnschedulableNodes bool    `json:"includeUnschedulableNodes"`
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, jsonFault(err)
	}
	least := ptr.Deref(p.Min, 0)
	switch {
	case p.CoresPerReplica < 0 || p.NodesPerReplica < 0 || least < 0 || p.Max < 0:
		return nil, "a number is negative"
	case p.CoresPerReplica == 0 && p.NodesPerReplica == 0:
		return nil, "neither coresPerReplica nor nodesPerReplica is above 0"
	case p.Max != 0 && p.Max < max(least, 1):
		return nil, fmt.Sprintf("max %d is below min %d", p.Max, max(least, 1))
	}
	return &Params{
		Linear: &sizing.Linear{
			CoresPerReplica: p.CoresPerReplica, NodesPerReplica: p.NodesPerReplica,
			Min: least, Max: p.Max, PreventSinglePointFailure: p.PreventSinglePointFailure,
		},
		IncludeUnschedulable: p.IncludeUnschedulableNodes,
		WantsZero:            p.Min != nil && least == 0,
		Oddities: ignored(text, "coresPerReplica", "nodesPerReplica", "min", "max",
			"preventSinglePointFailure", "includeUnschedulableNodes"),
	}, ""
}

func parseLadder(text []byte) (params *Params, fault string) {
	var p struct {
		CoresToReplicas           [][]int `json:"coresToReplicas"`
		NodesToReplicas           [][]int `json:"nodesToReplicas"`
		IncludeUnschedulableNodes bool    `json:"includeUnschedulableNodes"`
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, jsonFault(err)
	}
	if len(p.CoresToReplicas) == 0 && len(p.NodesToReplicas) == 0 {
		return nil, "neither coresToReplicas nor nodesToReplicas has a step"
	}
	params = &Params{
		Ladder:               &Ladder{},
		IncludeUnschedulable: p.IncludeUnschedulableNodes,
		Oddities:             ignored(text, "coresToReplicas", "nodesToReplicas", "includeUnschedulableNodes"),
	}
	if params.Ladder.Cores, fault = params.steps("coresToReplicas", p.CoresToReplicas); fault != "" {
		return nil, fault
	}
	if params.Ladder.Nodes, fault = params.steps("nodesToReplicas", p.NodesToReplicas); fault != "" {
		return nil, fault
	}
	return params, ""
}

// steps reads a table of a ladder, and brings it into the order in which CPA goes through it.
func (p *Params) steps(table string, steps [][]int) (read [][2]int, fault string) {
	for i, step := range steps {
		var pair [2]int
		if copy(pair[:], step); len(step) != 2 {
			p.Oddities = append(p.Oddities, fmt.Sprintf("%s[%d] = %v is no pair: CPA reads %v", table, i, clip(fmt.Sprint(step)), pair))
		}
		if pair[0] < 0 || pair[1] < 0 {
			return nil, fmt.Sprintf("%s[%d] is negative", table, i)
		}
		read = append(read, pair)
	}
	slices.SortFunc(read, func(a, b [2]int) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	for i := 1; i < len(read); i++ {
		if read[i][0] == read[i-1][0] && read[i][1] != read[i-1][1] {
			p.Oddities = append(p.Oddities, fmt.Sprintf("%s has two steps at %d: CPA goes by either of them", table, read[i][0]))
			break
		}
	}
	return read, ""
}

// ignored names the fields that CPA does not know. It reads names in any case.
func ignored(text []byte, known ...string) []string {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil
	}
	var clauses []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) }) {
			clauses = append(clauses, fmt.Sprintf("CPA ignores the field %q", clip(name)))
		}
	}
	return clauses
}
