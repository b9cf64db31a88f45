// Package scaling sizes pools by demand. It works on the leader:
//
//	Workspace pods (the watch of package starts) ──▶ recorder ──┐
//	placeholder pods (Snapshot) ──▶ lead times ───────┴──▶ demand.Pool ──▶ decide ──▶ metrics, Events; with mode Apply, a scale
//
// What is known of the demand is kept in a ConfigMap, so that the next leader goes on where this one was. decide says how much of
// what the demand asks for a pool gets: nothing that a limit forbids, no more while pulls fail. A pool whose placeholders somebody
// else scales is left alone.
package scaling
