package placement_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
)

// The pool of a Workspace whose templateRef names no namespace, and whose label therefore names its own.
func TestPoolByTemplate(t *testing.T) {
	known := func(keys ...[2]string) cluster.Facts[cluster.WorkspaceTemplate] {
		found := map[string]*cluster.WorkspaceTemplate{}
		for _, key := range keys {
			found[key[0]+"/"+key[1]] = &cluster.WorkspaceTemplate{Namespace: key[0], Name: key[1]}
		}
		return cluster.Known(found)
	}
	unknown := cluster.Unknown[cluster.WorkspaceTemplate]("forbidden")
	large := [2]string{"shared", "large"}
	for _, test := range []struct {
		name, shared  string
		template      [2]string // the labels
		facts         cluster.Facts[cluster.WorkspaceTemplate]
		pool, problem string
		also          config.TemplateRef // what the first pool lists besides
	}{
		{name: "listed as it is", template: large, facts: known(large), pool: "large"},
		{name: "the only one of its name", template: [2]string{"team", "large"}, facts: known(large), pool: "large"},
		{name: "one of the team's own", template: [2]string{"team", "large"}, facts: known(large, [2]string{"team", "large"}), pool: "cpu"},
		{name: "one of the team's own that cannot be read", template: [2]string{"team", "large"}, facts: known(large).WithMalformed(map[string]string{"team/large": "x"}), pool: "cpu"},
		{name: "no pool has the name", template: [2]string{"team", "huge"}, facts: known(large), pool: "cpu", problem: "WorkspaceTemplate team/huge does not exist, and no pool lists a template of that name"},
		{name: "two pools have the name", template: [2]string{"team", "large"}, facts: known(large), also: config.TemplateRef{Namespace: "other", Name: "large"}, pool: "cpu",
			problem: "WorkspaceTemplate team/large does not exist, and the pools cpu, large list templates of that name"},
		{name: "two pools have the name, one in the default namespace", shared: "shared", template: [2]string{"team", "large"}, facts: known(large), also: config.TemplateRef{Namespace: "other", Name: "large"}, pool: "large"},
		{name: "none in the default namespace", shared: "else", template: [2]string{"team", "large"}, facts: known(large), pool: "cpu"},
		{name: "templates are not known", template: [2]string{"team", "large"}, facts: unknown, pool: "cpu"},
		{name: "templates are not known, the default namespace is", shared: "shared", template: [2]string{"team", "large"}, facts: unknown, pool: "large"},
		{name: "no template", facts: known(large), pool: "cpu"},
		{name: "no name", template: [2]string{"team", ""}, facts: known(large), pool: "cpu"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := &config.WarmPoolConfiguration{
				Workspaces: config.Workspaces{DefaultTemplateNamespace: test.shared},
				Pools: []config.Pool{
					{Name: "cpu", NodePools: []string{"a"}, Templates: []config.TemplateRef{{Namespace: "shared", Name: "cpu"}}},
					{Name: "large", NodePools: []string{"b"}, Templates: []config.TemplateRef{{Namespace: "shared", Name: "large"}}},
				},
			}
			if test.also.Name != "" {
				cfg.Pools[0].Templates = append(cfg.Pools[0].Templates, test.also)
			}
			pools := placement.Compile(cfg, &cluster.Snapshot{Templates: test.facts}, placement.Seen{})
			labels := map[string]string{}
			if test.template != [2]string{} {
				labels["workspace.jupyter.org/template-namespace"], labels["workspace.jupyter.org/template-name"] = test.template[0], test.template[1]
			}
			choice := pools.ForPod(labels, &corev1.PodSpec{})
			assert.Equal(t, test.pool, choice.Pool.Config.Name)
			assert.Equal(t, test.problem, choice.Problem)
			assert.Equal(t, test.problem != "", choice.ByTemplate)
		})
	}
}
