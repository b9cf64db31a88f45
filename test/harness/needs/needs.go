// Package needs is for tests that need more than Go. Where a machine lacks it the test is skipped, and make test says at its
// end which tests were skipped, why, and what to do. A need named in WARMPOOL_REQUIRE fails the test instead.
//
// go test keeps no record of programs outside the module, and would repeat a skip from before one was installed. make
// names a new list of skips each time; a test that has read that name is run again.
package needs

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// Need is what a test needs beyond Go.
type Need string

// The needs, by the names that WARMPOOL_REQUIRE has, separated by commas.
const (
	ControlPlane Need = "control-plane" // the programs of package controlplane
	RealNodes    Need = "real-nodes"
	Chromium     Need = "chromium"
	FieldData    Need = "field-data" // objects recorded in real clusters
	Diff         Need = "diff"       // the program that kubectl diff calls
	// Flag is a flag of the test; it cannot be required.
	Flag Need = "flag"
)

const (
	requireVariable = "WARMPOOL_REQUIRE"
	// listVariable names the file to which skips are added.
	listVariable = "WARMPOOL_SKIPPED"
)

// Check skips the test, or fails it where the need is required, if err says that this machine lacks it.
func Check(t testing.TB, need Need, err error) {
	t.Helper()
	if need != ControlPlane { // its programs are pinned: a result with them holds until the module changes
		_ = os.Getenv(listVariable) // so that the result is not cached
	}
	if err != nil {
		Skip(t, need, err.Error())
	}
}

// Program says that a program, which is in this package of Debian, is not on the PATH, or nil.
func Program(name, debian string) error {
	if _, err := exec.LookPath(name); err != nil {
		return fmt.Errorf("no %s on the PATH: install it, on Debian by 'apt-get install %s'", name, debian)
	}
	return nil
}

// Skip skips the test, or fails it where the need is required.
func Skip(t testing.TB, need Need, why string) {
	t.Helper()
	if err := skip(need, t.Name(), why); err != nil {
		t.Fatal(err)
	}
	t.Skip(why)
}

// Main is Check for TestMain: where something is missing, no test of the package can run, and the process ends.
func Main(need Need, err error) {
	if err == nil {
		return
	}
	why := err.Error()
	if err := skip(need, "all tests", why); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = fmt.Fprintln(os.Stderr, "all tests are skipped: "+why)
	os.Exit(0)
}

// skip adds a line to the list of skips. The error says that the need is required.
func skip(need Need, test, why string) error {
	why = strings.Join(strings.Fields(why), " ")
	required, err := required()
	if err != nil {
		return err
	}
	if slices.Contains(required, need) {
		return fmt.Errorf("%s is required by %s, but: %s", need, requireVariable, why)
	}
	list := os.Getenv(listVariable)
	if list == "" {
		return nil
	}
	file, err := os.OpenFile(list, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open the list of skips, %s: %w", listVariable, err)
	}
	// One write: packages are tested side by side.
	_, err = fmt.Fprintf(file, "%s\t%s\t%s\t%s\n", need, why, testedPackage(), test)
	if err := cmp.Or(err, file.Close()); err != nil {
		return fmt.Errorf("add to the list of skips, %s: %w", listVariable, err)
	}
	return nil
}

func required() ([]Need, error) {
	var needs []Need
	for name := range strings.FieldsFuncSeq(os.Getenv(requireVariable), func(r rune) bool { return r == ',' || r == ' ' }) {
		need := Need(name)
		if known := []Need{ControlPlane, RealNodes, Chromium, FieldData, Diff}; !slices.Contains(known, need) {
			return nil, fmt.Errorf("%s: %q is none of %v", requireVariable, name, known)
		}
		needs = append(needs, need)
	}
	return needs, nil
}

// testedPackage is the folder of the package whose test this process is.
func testedPackage() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return os.Args[0]
	}
	return strings.TrimPrefix(strings.TrimSuffix(info.Path, ".test"), "warmpool.sh/")
}
