package generate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"warmpool.sh/test/harness/generate"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

// What no configuration may say, no law has to hold for.
func TestConfigIsValid(t *testing.T) {
	for seed := range uint64(5000) {
		cfg := generate.New(seed).Config()
		require.Empty(t, config.Validate(cfg, policy.IDs()), "seed %d", seed)
	}
}
