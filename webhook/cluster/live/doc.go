// Package live reads a cluster as a Snapshot, from informers of a controller-runtime manager or once.
//
// events of informers (transform.go drops what no rule needs) -> objects of one kind (cluster/kinds.go lists the kinds,
// kind.go asks whether anything is different) -> a new Snapshot that shares all that did not change (reader.go: off the
// request path, at most every 25 ms, and less often where that costs much). custom.go starts and stops the informers of custom kinds as their CRDs come and go.
//
// Commands that look once list instead (list.go, read.go), audits with what is around (around.go); what the user may not
// list is then not known.
//
// RBAC: list and watch, in the whole cluster, of
//   - nodes, namespaces, limitranges (core)
//   - deployments, daemonsets (apps)
//   - runtimeclasses (node.k8s.io)
//   - priorityclasses (scheduling.k8s.io)
//   - nodepools, nodeclaims (karpenter.sh)
//   - workspacetemplates (workspace.jupyter.org)
//
// in the placeholders' namespace, of pods and resourcequotas,
// in warmpool's own namespace, of the configmap warmpool-last-seen (package lastseen),
// and discovery, which every ServiceAccount may use (system:discovery).
package live
