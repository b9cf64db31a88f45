package version

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestVersion(t *testing.T) {
	built := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123abcd"}
	for _, c := range []struct {
		name, number string
		info         *debug.BuildInfo
		version      string
		commit       string
	}{
		{"make build", "v1.2.3-4-g0123abc", built("(devel)"), "v1.2.3-4-g0123abc", ""},
		{"go install of a version", "", built("v1.2.3"), "v1.2.3", ""},
		{"go build", "", built("v0.0.0-20261130183522-0123abcd", revision), "v0.0.0-20261130183522-0123abcd", "0123abcd"},
		{
			"go build with changes", "", built("v1.2.3+dirty", revision, debug.BuildSetting{Key: "vcs.modified", Value: "true"}),
			"v1.2.3+dirty", "0123abcd-dirty",
		},
		{"go build without git", "", built("(devel)"), "v0.0.0+unknown", ""},
		{"a test", "", built(""), "v0.0.0+unknown", ""},
		{"nothing recorded", "", nil, "v0.0.0+unknown", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.version, of(c.number, c.info))
			assert.Equal(t, c.commit, commitOf(c.info))
		})
	}
}
