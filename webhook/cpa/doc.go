// Package cpa knows the Cluster Proportional Autoscaler (CPA), which scales placeholders by the nodes that it counts: its
// flags and parameters, what it sets and where the count settles, which nodes it counts, and which rights it needs. The
// rules about it are in package policy, whose table lists them.
package cpa
