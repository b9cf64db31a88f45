// Package lastseen keeps what nodes of each pool looked like, so that a pool that is scaled to zero is known after a
// restart too.
//
// Recorder.Record (every replica) -> a ConfigMap in warmpool's own namespace (the leader) -> an informer in package live
// (every replica) -> Snapshot.LastSeen. The ConfigMap has one key per pool, which holds a JSON object of what was seen
// (seen) by instance type. It may be deleted at any time.
//
// RBAC in the own namespace:
//   - create configmaps (no name is known when a create is judged)
//   - list, watch and update the configmap warmpool-last-seen
package lastseen
