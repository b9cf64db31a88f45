// Package day_test replays a working day of Workspaces on the cluster of package simulation: without a warm pool, with one
// made by hand, and with warmpool. docs/proof.md shows what came of it, from docs/proof.json.
package day_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	limit = 3 * time.Minute // for anything that is waited for
	step  = 100 * time.Millisecond
	root  = "../../.."
)

var (
	update = flag.Bool("update", false, "run the day of docs/proof.md, of 5 minutes, three times, and write docs/proof.*")
	render = flag.Bool("render", false, "write docs/proof.md and the plots from docs/proof.json anew")
	nodes  = flag.String("real", "", "a file with the figures of real nodes that test/proof/realnodes has written; needed for -update")
	soak   = flag.Duration("soak", 0, "run days on warmpool for so long, and write what became of its memory to docs/proof.*")
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	flag.Parse()
	os.Exit(m.Run())
}
