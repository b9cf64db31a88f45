package faults_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var reportFile = filepath.Join("..", "..", "..", "docs", "evidence", "reliability.md")

const reportHead = `# Reliability

What becomes of Workspace pods while something fails. Made by ` + "`make reliability`" + `, not edited by hand.

| Fault | Pods | Refused | Not placed | Longest gap, s | Recovered after, s | |
|---|--:|--:|--:|--:|--:|---|
`

const reportFoot = `
- **How.** A real API server, 2 replicas as they ship, 20 pods a second that need a GPU. The replicas are processes behind a
  stand-in for the Service: new connections go to those that are ready (asked each 0.2 s), connections that exist stay. For this
  table the pods' webhook has ` + "`failurePolicy: Fail`" + `; as it ships (` + "`Ignore`" + `) a pod that is refused here is created and not placed.
- **Columns.** *Refused* and *Not placed* count what the API server answered; *Longest gap* is between two pods that were placed;
  *Recovered after* is from the fault to the first placed pod after the last that was not. Made on 2 cores that others used too: times
  are upper bounds, and what is refused differs from run to run (13 to 28 for 20 kills).
- **Killed.** The API server asks a webhook once: its client repeats no POST whose connection is refused or breaks. Most of what is
  refused finds a dead replica whose endpoint is still listed, the rest was under way on the connection that broke: with 2 replicas
  about one pod for each API server and kill. More replicas make it fewer, and with ` + "`Fail`" + ` the ReplicaSet makes another at once. A stop
  that is announced (a rollout, a drained node) loses nothing. Another webhook entry, for pods that the first one has not placed, does
  not make it none (tried, with endpoints picked at random as by kube-proxy: 9 of 1057 pods in 20 kills): it asks through the same
  Service at the same moment, finds the dead one of 2 replicas half of the time, and asks again about each pod that belongs to no pool.
  An entry and a Service for each replica would, but then rollouts have no surge, and leave one replica alone each time.
- **` + "`caBundle`" + `.** While it is wiped the API server trusts no one; warmpool writes it again when it hears of it, and waits for nothing
  else: what is refused falls between the watch event to warmpool, its patch, and the watch event to the API server. No webhook can keep
  it from being wiped, for the API server sends webhook configurations to none.
- **CRDs.** Pods are placed without NodePools, by the pool's label and devices of the configuration. A taint that only the NodePool
  declares is unknown until it is back: list it in the pool's ` + "`nodeTaints`" + ` if pods must tolerate it even then.
`

const attacksHead = "\n## Under attack\n"

func writeReport(t *testing.T, rows []row) {
	t.Helper()
	var table strings.Builder
	for _, r := range rows {
		table.WriteString(r.String() + "\n")
	}
	before, err := os.ReadFile(reportFile)
	require.NoError(t, err)
	_, attacks, _ := strings.Cut(string(before), attacksHead) // which test/integration/attacks writes
	require.NoError(t, os.WriteFile(reportFile, []byte(reportHead+table.String()+reportFoot+attacksHead+attacks), 0o644))
}

// The report tells of every fault that is tried.
func TestReport(t *testing.T) {
	text, err := os.ReadFile(reportFile)
	require.NoError(t, err)
	for _, f := range append(embeddedFaults, (&files{}).faults(true)...) {
		assert.Contains(t, string(text), "| "+f.name+" |")
	}
}
