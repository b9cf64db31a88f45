package cel

import (
	"path"
	"regexp"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// FuzzPattern: the regular expression matches what the glob does.
func FuzzPattern(f *testing.F) {
	for _, glob := range []string{"nvidia.com/*", "nvidia.com/mig-?g.5gb", `a\*b`, "a[b-d]", "a[^b]", `a[\-c]`, `a[\]]`, "a[.+^[]", "[z-a]", "a[", `a\`, "*", "é/?", "a{1}", "a|b", "(a)", "^a$"} {
		for _, name := range []string{"nvidia.com/gpu", "nvidia.com/gpu/x", "nvidia_com/gpu", "nvidia.com/mig-1g.5gb", "a*b", "ab", "ac", "a-", "a]", "a^", "a[", "a/", "", "é/é", "a{1}", "a", "b", "^a$", "x\na"} {
			f.Add(glob, name)
		}
	}
	f.Fuzz(func(t *testing.T, glob, name string) {
		if !utf8.ValidString(glob) || !utf8.ValidString(name) {
			return // neither YAML nor JSON has such text
		}
		want, bad := path.Match(glob, name)
		pattern, err := regularExpression(glob)
		if _, malformed := path.Match(glob, ""); malformed != nil {
			require.Error(t, err)
			return
		}
		if err != nil || bad != nil {
			return // a range that is none
		}
		compiled, err := regexp.Compile("^(" + pattern + ")$")
		require.NoError(t, err)
		assert.Equal(t, want, compiled.MatchString(name), "%s and %s on %q", glob, pattern, name)
	})
}
