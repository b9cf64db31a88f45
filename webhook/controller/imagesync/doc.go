// Package imagesync keeps the images that placeholders pull equal to those of the WorkspaceTemplates of their pool. One
// replica, the leader, does it:
//
//	Evaluators ── scan ──▶ queue ──▶ decide ──▶ write ──▶ Deployment
//	                                   │
//	                                   └──▶ Events, metrics
//
// Everything that it goes by comes from the Snapshot in force; decide is a pure function of it, of what is remembered
// about the placeholder, and of the time. A change of a template makes one write, and so one rollout.
package imagesync
