package chart_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRefused: what is wrong in the values is said by Helm, with the field.
func TestRefused(t *testing.T) {
	const usual = "requests: {cpu: 2, memory: 8Gi}, replicas: 2"
	pool := func(more, placeholder string) string {
		return fmt.Sprintf("pools: [{name: a, %s, placeholders: [{%s}]}]", more, placeholder)
	}
	cases := map[string]struct{ values, says string }{
		"field":              {pool("nodepools: [a]", usual), "at '/pools/0': additional properties 'nodepools' not allowed"},
		"field at the top":   {"poools: []", "additional properties 'poools' not allowed"},
		"value":              {pool("nodePools: [a], sizing: {mode: coexist}", usual), "at '/pools/0/sizing/mode': value must be one of 'Coexist', 'Exclusive'"},
		"type":               {pool("nodePools: a", usual), "at '/pools/0/nodePools': got string, want array"},
		"rule":               {"rules: {placeholder-sise: Deny}", "at '/rules': additional properties 'placeholder-sise' not allowed"},
		"taint":              {pool("nodePools: [a], taints: [dedicated]", usual), "at '/pools/0/taints/0': 'dedicated' does not match pattern"},
		"no pool":            {"pools: []", "at '/pools': minItems: got 0, want 1"},
		"no request":         {pool("nodePools: [a]", "replicas: 2"), "at '/pools/0/placeholders/0': missing property 'requests'"},
		"certificates":       {"certs: files", "at '/certs': value must be one of 'embedded', 'cert-manager'"},
		"placeholder's name": {pool("nodePools: [a]", "name: A_B, "+usual), "at '/pools/0/placeholders/0/name': 'A_B' does not match pattern"},

		"two ways to nodes":  {pool("nodePools: [a], nodeLabel: {key: x, values: [z]}", usual), "pools[0].nodeLabel: the pool has nodePools too"},
		"no nodes":           {pool("autoscaler: None", usual), "pools[0].nodePools: name at least one Karpenter NodePool"},
		"two numbers":        {pool("nodePools: [a]", usual+", scaling: {nodesPerReplica: 4, min: 2, max: 5}"), "pools[0].placeholders[0].replicas: CPA sets the number"},
		"no number":          {pool("nodePools: [a]", "requests: {cpu: 2}"), "pools[0].placeholders[0].replicas: say how many placeholders there are"},
		"demand and CPA":     {pool("nodePools: [a], size: {mode: Apply, max: 5}", usual), "pools[0].placeholders[0]: warmpool sets the number, by the pool's size"},
		"min above max":      {pool("nodePools: [a]", "requests: {cpu: 2}, scaling: {nodesPerReplica: 4, min: 6, max: 5}"), "pools[0].placeholders[0].scaling.min: 6 is more than max, 5"},
		"no ratio":           {pool("nodePools: [a]", "requests: {cpu: 2}, scaling: {min: 2, max: 5}"), "pools[0].placeholders[0].scaling.nodesPerReplica: CPA needs a ratio"},
		"ladder and ratio":   {pool("nodePools: [a]", "requests: {cpu: 2}, scaling: {min: 2, ladder: {nodesToReplicas: [[1, 2]]}}"), "pools[0].placeholders[0].scaling.ladder: CPA goes by"},
		"no device":          {pool("nodePools: [a], accelerators: ['nvidia.com/*']", usual), "pools[0].placeholders[0].requests: pool a has accelerators (nvidia.com/*)"},
		"pool twice":         {"pools: [{name: a, nodePools: [a]}, {name: a, nodePools: [b]}]", "pools[1].name: pool a is in the list already"},
		"nodes of two":       {"pools: [{name: a, nodePools: [a]}, {name: b, nodePools: [a]}]", "pools[1]: pools a and b both claim the nodes with label karpenter.sh/nodepool=a"},
		"placeholders twice": {pool("nodePools: [a]", usual+"}, {"+usual), "pools[0].placeholders[1].name: pools[0].placeholders[0] has the Deployment spaces-placeholder-a already"},
		"one namespace":      {"namespace: x\nplaceholders: {namespace: x}", "placeholders.namespace: x is warmpool's own namespace"},
	}
	for version, helm := range helms(t) {
		for name, c := range cases {
			t.Run(version+"/"+name, func(t *testing.T) {
				_, err := template(t, helm, c.values)
				require.Error(t, err)
				assert.Contains(t, err.Error(), c.says)
			})
		}
	}
}
