package day_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/needs"
	"warmpool.sh/test/harness/simulation"
)

// variant is what keeps nodes warm.
type variant string

const (
	nothing  variant = "no warm pool"
	byHand   variant = "by hand"
	warmpool variant = "warmpool"
)

func (v variant) placeholders() bool { return v != nothing }
func (v variant) byHand() bool       { return v == byHand }

// open starts a cluster whose placeholders, if there are any, are warm.
func (v variant) open(t *testing.T, delays simulation.Delays) *simulation.Cluster {
	t.Helper()
	needs.Check(t, needs.ControlPlane, simulation.Ready(t.Context()))
	opts := simulation.Options{Warmpool: v == warmpool, Delays: delays, Log: t.Output()}
	if v == byHand {
		opts.Objects = decode(t, "testdata/guide.yaml")
	}
	c, err := simulation.Start(t.Context(), opts)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Stop()) })
	if v.placeholders() {
		require.NoError(t, c.Warm(t.Context(), limit, "cpu", simulation.CPUImage))
		require.NoError(t, c.Warm(t.Context(), limit, "gpu", simulation.GPUImage))
	}
	return c
}

func decode(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	objects, err := controlplane.Decode(bytes.NewReader(text))
	require.NoError(t, err)
	return objects
}
