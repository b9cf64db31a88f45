// Package audits audits the cluster that warmpool runs in, again and again, and reports what it finds. One replica, the
// leader, does it:
//
//	Evaluators (watches) ─┬─▶ every rule ──▶ Report ─┬─▶ metrics
//	lists, at that time  ─┘                          ├─▶ Events about new errors
//	                                                 └─▶ report objects (openreports.io, else wgpolicyk8s.io)
//
// What the watches have is not read again. The rest is listed in pages when an audit runs; no admission waits for it, and
// it is dropped afterwards. What warmpool may not read the rules call not verified. What it may read and cannot makes the
// audit fail: then all stays reported as it was, for a list that is missing must not look like faults that are fixed.
//
// An audit starts when this replica begins to lead, every auditInterval, and a few seconds after a change of what rules go
// by, but at most every half minute for that. Nodes, their claims and pods are no such change: in a large cluster
// they come and go all the time.
package audits
