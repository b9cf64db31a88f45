// Package policysync keeps the parameters of the policy of package cel current in a cluster, where that places the pods of
// Workspaces and no webhook does. The leader writes them by server-side apply, and only where they differ.
//
// Nothing is placed by parameters that were not tried: they are first those of another binding of the same policy, which is
// for samples alone, pods with a label of their own that are created as a dry run in warmpool's own namespace, one for each
// pool. What becomes of them is held against what webhook/placement makes of them, and only then are the parameters written
// that all Workspace pods are placed by. Samples bring an annotation, in which the policy says which parameters it went by:
// an API server goes by what it has read, and that may be what was there a second ago.
//
// The policy and its bindings are part of the manifests, and warmpool may not change them: whoever may has the API server
// change any object that anybody writes. Placing a pod twice is the same as once, so a webhook of pods may be there too.
package policysync
