// Package sizing is the arithmetic of warm pools: what a pod asks for as the scheduler counts it (Request), what a node
// of a pool offers beside its DaemonSets (Shape), and where the number of placeholders settles (Linear). It is pure.
//
// Quantities are exact: bytes and thousandths of a cpu, never rounded. A Tracker keeps the shapes of all pools up to
// date at a cost that grows with what changed and not with the cluster.
package sizing
