package rbac_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/test/harness/install"
)

func TestWhatIsGrantedAndNotUsedIsSaid(t *testing.T) {
	root, err := install.Root()
	require.NoError(t, err)
	const role = "Role warmpool of manifests/base/warmpool/rbac.yaml"
	lease := grant{group: "coordination.k8s.io", resource: "leases", verb: "update", namespace: "warmpool-system", name: "warmpool", role: role}
	made := grant{group: "coordination.k8s.io", resource: "leases", verb: "create", namespace: "warmpool-system", role: role}
	nodes := grant{resource: "nodes", verb: "list", role: "ClusterRole warmpool of x"}
	events := grant{group: "events.k8s.io", resource: "events", verb: "create", role: "ClusterRole warmpool of x"}
	grants := []grant{lease, made, nodes, events}
	requests := []request{
		{group: "coordination.k8s.io", resource: "leases", verb: "update", namespace: "warmpool-system", name: "warmpool"},
		{group: "coordination.k8s.io", resource: "leases", verb: "create", namespace: "warmpool-system"},
		{resource: "nodes", verb: "list"},
		{group: "events.k8s.io", resource: "events", verb: "create", namespace: "a"},
		{group: "events.k8s.io", resource: "events", verb: "create", namespace: "b"},
	}
	require.Empty(t, tooMuch(grants, requests))

	with := func(change func(*grant), g grant) []string {
		change(&g)
		return tooMuch(append([]grant{g}, grants...), requests)
	}
	for want, got := range map[string][]string{
		"nothing uses delete of leases.coordination.k8s.io warmpool in namespace warmpool-system, which " + role + " grants":     with(func(g *grant) { g.verb = "delete" }, lease),
		"nothing uses update of leases.coordination.k8s.io other in namespace warmpool-system, which " + role + " grants":        with(func(g *grant) { g.name = "other" }, lease),
		"nothing uses update of leases.coordination.k8s.io in namespace warmpool-system, which " + role + " grants":              with(func(g *grant) { g.name = "" }, lease),
		"nothing uses update of leases.coordination.k8s.io warmpool, which " + role + " grants":                                  with(func(g *grant) { g.namespace = "" }, lease),
		"nothing uses create of leases.coordination.k8s.io warmpool in namespace warmpool-system, which " + role + " grants":     with(func(g *grant) { g.name = "warmpool" }, made),
		"nothing uses list of nodes/status, which ClusterRole warmpool of x grants":                                              with(func(g *grant) { g.resource = "nodes/status" }, nodes),
		"nothing uses list of nodes.x, which ClusterRole warmpool of x grants":                                                   with(func(g *grant) { g.group = "x" }, nodes),
		"nothing uses * of nodes, which ClusterRole warmpool of x grants":                                                        with(func(g *grant) { g.verb = "*" }, nodes),
		"only in namespace a is there use for create of events.events.k8s.io, which ClusterRole warmpool of x grants everywhere": tooMuch(grants, requests[:4]),
	} {
		assert.Equal(t, []string{want}, got)
	}

	t.Run("the shipped rights are all read", func(t *testing.T) {
		for overlay, secrets := range map[string]bool{"embedded": true, "cert-manager": false} {
			rendered, err := install.Render(filepath.Join(root, "manifests", "overlays", overlay))
			require.NoError(t, err)
			all, err := granted(root, rendered)
			require.NoError(t, err)
			assert.Contains(t, all, lease, overlay)
			assert.Contains(t, all, made, overlay)
			secret := grant{resource: "secrets", verb: "update", namespace: "warmpool-system", name: "warmpool-ca", role: "Role warmpool-certs of manifests/certs/embedded/rbac.yaml"}
			assert.Equal(t, secrets, slices.Contains(all, secret), overlay)
		}
	})
}
