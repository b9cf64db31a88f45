// Package placing keeps the policy of package cel current in a cluster, where that places the pods of Workspaces and no
// webhook does. The leader writes parameters, policy and binding by server-side apply, and only what differs.
//
// Nothing is placed by a policy that was not tried: the binding begins with pods that carry a label of the samples, which are
// created as a dry run in warmpool's own namespace, one for each pool. What becomes of them is held against what
// webhook/placement makes of them, and only then is the binding for all Workspace pods. Placing a pod twice is the same as
// once, so a webhook of pods may be there meanwhile.
//
// The policy itself is part of the manifests. The API server lets only those create it who may read the objects of its
// parameters' kind everywhere, ConfigMaps, and warmpool may not; to change it takes no such right.
package placing
