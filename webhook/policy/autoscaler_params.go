package policy

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/sizing"
)

// autoscalerParams are CPA's parameters as it takes them, of one of the two modes.
type autoscalerParams struct {
	Linear *sizing.Linear
	Ladder *ladder
	// IncludeUnschedulable tells that nodes count which take no pods.
	IncludeUnschedulable bool
	// WantsZero tells that somebody wrote min 0, which linear mode reads as 1.
	WantsZero bool

	// oddities are what CPA passes over in silence, one clause each.
	oddities []string
}

// ladder is CPA's ladder mode: steps of a count, and the replicas from there on, sorted by the count.
type ladder struct{ Cores, Nodes [][2]int }

// paramsSource is where CPA takes its parameters from, and what it finds there.
type paramsSource struct {
	*autoscalerParams // nil: unknown or not taken
	object            Ref
	path              *field.Path
	value             string
	// fault says why CPA does not take the parameters, unknown why that cannot be told.
	fault, unknown string
}

// paramsOf looks for the parameters where CPA does: in the ConfigMap, or else in the defaults that it would make one of.
func (s *autoscaler) paramsOf(configMaps cluster.Facts[corev1.ConfigMap]) paramsSource {
	name := s.flags["configmap"]
	key := s.namespace + "/" + name
	p := paramsSource{object: Ref{Kind: "Deployment", Namespace: s.Namespace, Name: s.Name}, path: s.args, value: "--configmap=" + name}
	configMap := configMaps.Get(key)
	defaults, hasDefaults := s.flags["default-params"]
	switch {
	case name == "" || s.namespace == "":
		return p // said by startFaults
	case strings.Contains(key, "$("):
		p.unknown = "the value of a variable in " + key
	case !configMaps.Known():
		p.unknown = "ConfigMaps: " + configMaps.Reason()
	case configMap != nil:
		p.object = Ref{Kind: "ConfigMap", Namespace: configMap.Namespace, Name: configMap.Name}
		p.path = field.NewPath("data")
		p.read(configMap.Data)
	case configMaps.Malformed(key) != "":
		p.unknown = "ConfigMap " + key + ": " + configMaps.Malformed(key)
	case hasDefaults:
		p.value = "--default-params=" + clip(defaults)
		if data, err := defaultData(defaults); err == nil {
			p.read(data)
		}
	case !configMaps.Whole():
		p.unknown = "ConfigMap " + key + " is not among these files"
	default:
		p.fault = "there is no ConfigMap " + key
	}
	return p
}

// read takes parameters from a ConfigMap's data.
func (p *paramsSource) read(data map[string]string) {
	params, mode, fault := parseParams(data)
	p.autoscalerParams, p.fault = params, fault
	if mode != "" && p.object.Kind == "ConfigMap" {
		p.path, p.value = p.path.Child(mode), clip(data[mode])
	} else if p.object.Kind == "ConfigMap" {
		p.value = strings.Join(slices.Sorted(maps.Keys(data)), ", ")
	}
}

// invalid is a finding about the parameters, where they are.
func (s *autoscaler) invalid(message string) Finding {
	p := s.params
	return invalid(p.path, p.value, message).about(p.object.Kind, p.object.Namespace, p.object.Name, s.poolName())
}

// defaultData is the data of the ConfigMap that CPA makes of --default-params.
func defaultData(text string) (map[string]string, error) {
	var byMode map[string]any
	if err := json.Unmarshal([]byte(text), &byMode); err != nil {
		return nil, err
	}
	data := map[string]string{}
	for mode, value := range byMode {
		encoded, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		data[mode] = string(encoded)
	}
	return data, nil
}

// parseParams reads parameters as CPA 1.10 does; fault says why it would not take them, mode where that is, if in one.
func parseParams(data map[string]string) (params *autoscalerParams, mode, fault string) {
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
	if fault != "" {
		return nil, mode, fault
	}
	return params, mode, ""
}

func parseLinear(text []byte) (*autoscalerParams, string) {
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
	least := 0
	if p.Min != nil {
		least = *p.Min
	}
	switch {
	case p.CoresPerReplica < 0 || p.NodesPerReplica < 0 || least < 0 || p.Max < 0:
		return nil, "a number is negative"
	case p.CoresPerReplica == 0 && p.NodesPerReplica == 0:
		return nil, "neither coresPerReplica nor nodesPerReplica is above 0"
	case p.Max != 0 && p.Max < max(least, 1):
		return nil, fmt.Sprintf("max %d is below min %d", p.Max, max(least, 1))
	}
	return &autoscalerParams{
		Linear: &sizing.Linear{
			CoresPerReplica: p.CoresPerReplica, NodesPerReplica: p.NodesPerReplica,
			Min: least, Max: p.Max, PreventSinglePointFailure: p.PreventSinglePointFailure,
		},
		IncludeUnschedulable: p.IncludeUnschedulableNodes,
		WantsZero:            p.Min != nil && least == 0,
		oddities: ignored(text, "coresPerReplica", "nodesPerReplica", "min", "max",
			"preventSinglePointFailure", "includeUnschedulableNodes"),
	}, ""
}

// jsonFault says in the words of JSON what CPA could not read.
func jsonFault(err error) string {
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("%s: got %s, want %s", mismatch.Field, clip(mismatch.Value), mismatch.Type)
	}
	return "no JSON: " + clip(err.Error())
}

func parseLadder(text []byte) (*autoscalerParams, string) {
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
	params := &autoscalerParams{
		Ladder:               &ladder{},
		IncludeUnschedulable: p.IncludeUnschedulableNodes,
		oddities:             ignored(text, "coresToReplicas", "nodesToReplicas", "includeUnschedulableNodes"),
	}
	for _, table := range []struct {
		name  string
		steps [][]int
		into  *[][2]int
	}{{"coresToReplicas", p.CoresToReplicas, &params.Ladder.Cores}, {"nodesToReplicas", p.NodesToReplicas, &params.Ladder.Nodes}} {
		for i, step := range table.steps {
			var read [2]int
			if copy(read[:], step); len(step) != 2 {
				params.oddities = append(params.oddities, fmt.Sprintf("%s[%d] = %v is no pair: CPA reads %v", table.name, i, clip(fmt.Sprint(step)), read))
			}
			if read[0] < 0 || read[1] < 0 {
				return nil, fmt.Sprintf("%s[%d] is negative", table.name, i)
			}
			*table.into = append(*table.into, read)
		}
		params.sort(table.name, *table.into)
	}
	return params, ""
}

// sort brings the steps of a table into the order in which CPA goes through them.
func (p *autoscalerParams) sort(table string, steps [][2]int) {
	slices.SortFunc(steps, func(a, b [2]int) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	for i := 1; i < len(steps); i++ {
		if steps[i][0] == steps[i-1][0] && steps[i][1] != steps[i-1][1] {
			p.oddities = append(p.oddities, fmt.Sprintf("%s has two steps at %d: CPA goes by either of them", table, steps[i][0]))
			return
		}
	}
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

// replicas are the count that the ladder gives.
func (l *ladder) replicas(nodes int, cores float64) int {
	return max(step(l.Nodes, float64(nodes)), step(l.Cores, cores))
}

func step(steps [][2]int, have float64) int {
	if len(steps) == 0 {
		return 0
	}
	// The first step that is out of reach; below the first of all CPA takes that.
	i, _ := slices.BinarySearchFunc(steps, have, func(s [2]int, have float64) int {
		if float64(s[0]) > have {
			return 1
		}
		return -1
	})
	return steps[max(i-1, 0)][1]
}
