package policy_test

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"warmpool.sh/webhook/cluster/manifest"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

// FuzzCluster judges what any bytes make of a configuration and of a cluster, custom resources among it: nothing panics, and
// what is found is found again.
func FuzzCluster(f *testing.F) {
	for _, file := range glob(f, filepath.Join("testdata", "*", "*.txtar")) {
		c := readCase(f, file)
		f.Add([]byte(c.Sections["config.yaml"]), []byte(c.Sections["cluster.yaml"]))
	}
	placeholder := readCase(f, filepath.Join("testdata", "placeholder-size", "deny-configured.txtar"))
	pod := readCase(f, filepath.Join("testdata", "workspace-size", "deny-one-byte.txtar"))
	f.Fuzz(func(t *testing.T, configuration, objects []byte) {
		cfg, err := config.Load(configuration, policy.IDs())
		if err != nil {
			return
		}
		facts := manifest.Load([]string{"-"}, bytes.NewReader(objects), manifest.Options{}).Snapshot
		e, err := policy.New(cfg, facts, time.Unix(0, 0))
		require.NoError(t, err)
		findings, _ := e.Audit()
		again, _ := e.Audit()
		require.Equal(t, printAudit(findings), printAudit(again))
		for _, c := range []*testCase{placeholder, pod} {
			object := c.object(t, e, "object.yaml")
			e.Mutate(object)
			require.Equal(t, printFindings(e.Check(object)), printFindings(e.Check(object)))
		}
	})
}
