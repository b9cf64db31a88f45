// Package warmlabels labels the placeholder pods whose images are on their nodes, so that Workspaces can prefer these nodes and
// a PodDisruptionBudget can spare the pods that still pull. It writes what deleting each of them costs, so that scaling down
// takes those first whose nodes go with them. One replica, the leader, does it:
//
//	Evaluators ── scan ──▶ queue ──▶ decide ──▶ write ──▶ labels and deletion cost of a Pod
//	                │
//	                └──▶ metrics
//
// Everything that it goes by comes from the Snapshot in force, but for the nodes that have Workspaces; decide is a pure function of the pod. While no replica
// leads the labels stay as they are.
package warmlabels
