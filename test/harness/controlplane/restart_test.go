package controlplane

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/needs"
)

// What was there before is there afterwards, at the same address, and it is another process that says so.
func TestRestartAPIServer(t *testing.T) {
	needs.Check(t, needs.ControlPlane, Ready(t.Context(), Options{}))
	c, err := Start(t.Context(), Options{Log: t.Output()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Stop()) })
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	require.NoError(t, c.client.Create(t.Context(), namespace))
	before, host := c.children[1], c.Config.Host

	require.NoError(t, c.RestartAPIServer(t.Context(), 0))
	assert.Equal(t, host, c.Config.Host)
	require.NoError(t, c.client.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace))
	assert.True(t, before.cmd.ProcessState.Exited())
	require.Len(t, c.children, 2, "the one that is gone is forgotten")
	assert.Equal(t, apiServer, c.children[1].name)
	assert.NotEqual(t, before.cmd.Process.Pid, c.children[1].cmd.Process.Pid)
}
