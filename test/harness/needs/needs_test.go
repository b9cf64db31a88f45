package needs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recorder is a test that notes how it ended. Its methods do not end the caller, as those of a testing.T do.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Helper()      {}
func (r *recorder) Name() string { return "TestName" }
func (r *recorder) Skip(args ...any) {
	if r.failed == "" {
		r.skipped = fmt.Sprint(args...)
	}
}
func (r *recorder) Fatal(args ...any) { r.failed = fmt.Sprint(args...) }

var errMissing = errors.New("no Chromium:\ninstall it")

func TestMissingIsSkippedAndListed(t *testing.T) {
	list := filepath.Join(t.TempDir(), "list")
	t.Setenv(listVariable, list)
	t.Setenv(requireVariable, "control-plane, real-nodes")
	var there, missing recorder
	Check(&there, Chromium, nil)
	Check(&missing, Chromium, errMissing)
	Skip(&missing, Flag, "with -long only")
	assert.Equal(t, recorder{}, there)
	assert.Empty(t, missing.failed)
	assert.Equal(t, "with -long only", missing.skipped)
	text, err := os.ReadFile(list)
	require.NoError(t, err)
	assert.Equal(t, "chromium\tno Chromium: install it\ttest/harness/needs\tTestName\nflag\twith -long only\ttest/harness/needs\tTestName\n", string(text))
}

func TestWithoutAListItIsSkippedAllTheSame(t *testing.T) {
	t.Setenv(listVariable, "")
	t.Setenv(requireVariable, "")
	var missing recorder
	Check(&missing, RealNodes, errMissing)
	assert.Equal(t, errMissing.Error(), missing.skipped)
}

func TestRequiredIsAFailure(t *testing.T) {
	list := filepath.Join(t.TempDir(), "list")
	t.Setenv(listVariable, list)
	for require, message := range map[string]string{
		"chromium":              "chromium is required by WARMPOOL_REQUIRE, but: no Chromium: install it",
		"real-nodes,chromium":   "chromium is required by WARMPOOL_REQUIRE, but: no Chromium: install it",
		"chromuim":              `WARMPOOL_REQUIRE: "chromuim" is none of [control-plane real-nodes chromium field-data diff]`,
		"control-plane,,flag, ": `WARMPOOL_REQUIRE: "flag" is none of [control-plane real-nodes chromium field-data diff]`,
	} {
		t.Setenv(requireVariable, require)
		var missing recorder
		Check(&missing, Chromium, errMissing)
		assert.Equal(t, message, missing.failed)
	}
	assert.NoFileExists(t, list)
}

func TestProgram(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	require.EqualError(t, Program("diff", "diffutils"), "no diff on the PATH: install it, on Debian by 'apt-get install diffutils'")
	require.NoError(t, os.WriteFile(filepath.Join(bin, "diff"), nil, 0o700))
	assert.NoError(t, Program("diff", "diffutils"))
}
