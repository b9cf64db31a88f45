// Package starts tells how each Workspace starts: beside a placeholder, in the place of one, or cold, and why. One
// replica, the leader, does it, by watches alone:
//
//	placeholder pods (Snapshot) ──▶ history ──┐
//	Workspace pods (a watch of its own) ──────┴──▶ classify ──▶ histogram, counter, Event where it was cold
//
// classify is a pure function of the pod, of what is remembered about its node, and of the Snapshot.
package starts
