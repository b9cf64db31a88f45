// Package placement decides where pods belong and how their spec must say so. It is pure: Compile turns
// configuration and Snapshot into Pools, Pools choose a Pool for a Workspace pod or a placeholder, and a Pool
// changes a PodSpec: the required node affinity and the tolerations that bring the pod onto the pool's nodes, and the
// preferred pod affinity that brings it onto a warm one, as JSON patch operations (RFC 6902) and in the typed spec alike.
//
// Three promises hold for every change: a second pass adds nothing, no pod is made to contradict itself, and
// what somebody wrote stays byte for byte.
package placement
