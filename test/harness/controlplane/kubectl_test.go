package controlplane

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"warmpool.sh/test/harness/needs"
)

func TestKubectl(t *testing.T) {
	needs.Check(t, needs.Diff, needs.Program("diff", "diffutils"))
	needs.Check(t, needs.ControlPlane, Ready(t.Context(), Options{}))
	c, err := Start(t.Context(), Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Stop()) })

	out, _, err := c.Kubectl(t.Context(), "", "version", "-o", "json")
	require.NoError(t, err)
	assert.Contains(t, out, "serverVersion")

	const manifest = "apiVersion: v1\nkind: Namespace\nmetadata: {name: made-by-kubectl}\n"
	_, _, err = c.Kubectl(t.Context(), manifest, "diff", "-f", "-")
	var failed *KubectlError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, 1, failed.Code, "there are differences")
	out, _, err = c.Kubectl(t.Context(), manifest, "apply", "-f", "-")
	require.NoError(t, err)
	assert.Equal(t, "namespace/made-by-kubectl created\n", out)
	_, _, err = c.Kubectl(t.Context(), "", "get", "namespace", "absent")
	assert.ErrorContains(t, err, "NotFound")
}
