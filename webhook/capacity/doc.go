// Package capacity is the arithmetic of how many placeholders a pool keeps: a formula for pools whose nodes take one Workspace
// (Orders), and a replay of any pool's starts under any Policy (Pool.Replay). It is pure.
//
// A start takes a place and so orders a node: the evicted placeholder's, or its own. With S placeholders kept, the nodes on
// order are the starts of the last lead time; the next start finds a place while they are fewer than S.
package capacity
