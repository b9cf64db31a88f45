// Package live reads a cluster as a Snapshot, from informers of a controller-runtime manager.
//
// events of informers (transform.go drops what no rule needs) -> objects of one kind (kind.go: is anything different?)
// -> a new Snapshot of the kinds that changed (reader.go: off the request path, at most every 100 ms). custom.go starts
// and stops the informers of custom kinds as their CRDs come and go.
//
// RBAC: list and watch, in the whole cluster, of
//   - nodes, namespaces (core)
//   - deployments (apps)
//   - priorityclasses (scheduling.k8s.io)
//   - nodepools (karpenter.sh)
//   - workspacetemplates (workspace.jupyter.org)
//
// and discovery, which every ServiceAccount may use (system:discovery).
package live
