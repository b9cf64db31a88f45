package policy_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/test/harness/rulecases"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

// simulated are parameters of CPA's linear mode, and the cluster that they work in.
type simulated struct {
	CoresPerReplica           float64 `json:"coresPerReplica,omitempty"`
	NodesPerReplica           float64 `json:"nodesPerReplica,omitempty"`
	Min                       int     `json:"min,omitempty"`
	Max                       int     `json:"max,omitempty"`
	PreventSinglePointFailure bool    `json:"preventSinglePointFailure,omitempty"`

	others int
	millis int64 // of one node
}

func randomSimulation(random *rand.Rand) simulated {
	for {
		s := simulated{
			Min: random.IntN(4), PreventSinglePointFailure: random.IntN(2) == 0,
			others: 1 + random.IntN(6), millis: 500 * int64(1+random.IntN(32)),
		}
		// Many of them near 1, where the verdict turns.
		if random.IntN(3) > 0 {
			s.NodesPerReplica = float64(random.IntN(48)) / 16
		}
		if random.IntN(3) > 0 {
			s.CoresPerReplica = float64(s.millis) / 1000 * float64(random.IntN(48)) / 16
		}
		if random.IntN(2) == 0 {
			s.Max = 1 + random.IntN(30)
		}
		if s.NodesPerReplica+s.CoresPerReplica > 0 && (s.Max == 0 || s.Max >= max(s.Min, 1)) {
			return s // CPA takes no others
		}
	}
}

// wanted is CPA's count for so many nodes, written down anew from its documentation: the larger of both ratios, each
// rounded up and kept between min and max, and 2 at least where one node is not to be the only one.
func (s simulated) wanted(nodes int) int {
	bounded := func(have, ratio float64) int {
		if ratio == 0 {
			return 1
		}
		n := int(math.Ceil(have / ratio))
		if s.Max > 0 && n > s.Max {
			n = s.Max
		}
		if n < s.Min {
			n = s.Min
		}
		if n < 1 {
			n = 1
		}
		return n
	}
	n := bounded(float64(nodes), s.NodesPerReplica)
	if c := bounded(float64(int64(nodes)*s.millis)/1000, s.CoresPerReplica); c > n {
		n = c
	}
	if n < 2 && nodes > 1 && s.PreventSinglePointFailure {
		n = 2
	}
	return n
}

// settles plays CPA and an autoscaler that starts a node for each placeholder, one after the other. The count never
// shrinks: each node is one more to count.
func (s simulated) settles() (count int, ends bool) {
	for range 20_000 {
		want := s.wanted(s.others + count)
		if want <= count {
			return count, true
		}
		count++ // one placeholder, one node
	}
	return count, false
}

const simulatedCluster = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: cpu-a}
spec: {template: {spec: {}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: ph, namespace: overprovisioning, labels: {warmpool.sh/pool: cpu}}
spec:
  selector: {matchLabels: {app: ph}}
  template: {metadata: {labels: {app: ph}}, spec: {containers: [{name: pause, image: pause}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cpa, namespace: overprovisioning}
spec:
  selector: {matchLabels: {app: cpa}}
  template:
    metadata: {labels: {app: cpa}}
    spec:
      containers:
      - name: cpa
        image: registry.k8s.io/cpa/cluster-proportional-autoscaler:v1.10.3
        args: [--namespace=overprovisioning, --configmap=cpa, --target=deployment/ph, --nodelabels=karpenter.sh/nodepool=cpu-a]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cpa, namespace: overprovisioning}
data: {linear: '%s'}
`

// verdict is what cpa-runaway finds.
func (s simulated) verdict(t *testing.T) []policy.Finding {
	t.Helper()
	params, err := json.Marshal(s)
	require.NoError(t, err)
	objects := fmt.Sprintf(simulatedCluster, params)
	for i := range s.others {
		objects += fmt.Sprintf("---\napiVersion: v1\nkind: Node\nmetadata: {name: n%d, labels: {karpenter.sh/nodepool: cpu-a}}\nstatus: {allocatable: {cpu: %dm}}\n", i, s.millis)
	}
	cfg, err := config.Load([]byte(`
apiVersion: config.warmpool.sh/v1alpha1
kind: WarmPoolConfiguration
pools: [{name: cpu, nodePools: [cpu-a], sizing: {mode: Exclusive}}]
`), policy.IDs())
	require.NoError(t, err)
	c := &testCase{&rulecases.Case{Config: cfg, Sections: map[string]string{"cluster.yaml": objects}}}
	c.Alone("cpa-runaway")
	findings, _ := c.evaluator(t).Audit()
	return findings
}

var (
	settlesAt = regexp.MustCompile(`settles at (\d+)$`)
	callsFor  = regexp.MustCompile(`calls for (\d+) warm nodes for one other node`)
)

// The rule's verdict, and the count that it names, are what comes out when the loop is played step by step.
func TestRunawayAgreesWithSimulation(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11)) // the same cases in every run
	kinds := map[string]int{}
	for range 1000 {
		s := randomSimulation(random)
		findings := s.verdict(t)
		kind := s.compare(t, findings)
		kinds[kind]++
		if t.Failed() {
			require.Fail(t, "disagrees", "%s: %+v: %s", kind, s, printAudit(findings))
		}
	}
	for _, kind := range []string{"unbounded", "up to max", "steep", "fine", "fixed"} {
		assert.Greater(t, kinds[kind], 10, "cases of kind %s: %v", kind, kinds)
	}
}

// compare holds the findings to the simulation, and tells which kind of case it was.
func (s simulated) compare(t *testing.T, findings []policy.Finding) string {
	t.Helper()
	count, ends := s.settles()
	free := s
	free.Min, free.Max = 0, 0
	_, freeEnds := free.settles()
	one := free
	one.others = 1
	forOne, _ := one.settles()
	fixed := s.Max > 0 && s.Max <= max(s.Min, 1) && s.wanted(1) == s.wanted(1000)

	message, severity := "", policy.Severity("")
	if assert.LessOrEqual(t, len(findings), 1); len(findings) == 1 {
		message, severity = findings[0].Error.Detail, findings[0].Severity
	}
	named := func(pattern *regexp.Regexp) int {
		found := pattern.FindStringSubmatch(message)
		if !assert.Len(t, found, 2, "no count in %q", message) {
			return -1
		}
		n, err := strconv.Atoi(found[1])
		require.NoError(t, err)
		return n
	}
	switch {
	case fixed:
		assert.Empty(t, message)
		return "fixed"
	case !ends:
		assert.Equal(t, policy.SeverityError, severity)
		assert.Contains(t, message, "runaway, unbounded")
		return "unbounded"
	case !freeEnds:
		assert.Equal(t, policy.SeverityError, severity)
		assert.Contains(t, message, fmt.Sprintf("runaway up to max=%d", s.Max))
		assert.Equal(t, count, named(settlesAt))
		return "up to max"
	case forOne > 10:
		assert.Equal(t, policy.SeverityWarning, severity)
		assert.Equal(t, count, named(settlesAt))
		assert.Equal(t, forOne, named(callsFor))
		return "steep"
	default:
		assert.Empty(t, message)
		return "fine"
	}
}
