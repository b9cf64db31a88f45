// Package faults_test proves what becomes of pods while something fails: warmpool, its certificates, its configuration,
// the API server. What is measured is in docs/evidence/reliability.md.
package faults_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	limit = 90 * time.Second // for anything that is waited for
)

var (
	long   = flag.Bool("long", false, "try all faults, and for as long as they last; else some, shortly")
	update = flag.Bool("update", false, "write the figures to docs/evidence/reliability.md; implies -long")
)

// repetitions of a fault: in the short form, in the long one, and for the figures of docs/evidence/reliability.md.
func repetitions(short, longer, most int) int {
	switch {
	case *update:
		return most
	case *long:
		return longer
	}
	return short
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	flag.Parse()
	*long = *long || *update
	os.Exit(m.Run())
}
