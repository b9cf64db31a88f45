// Package simulation is a Kubernetes cluster of which all is real but the machines: etcd, API server, controllers,
// scheduler and Karpenter, warmpool as its manifests ship it, or placeholders that somebody made by hand. It says what
// becomes of Workspaces there.
//
// What is played:
//
//	machines   Karpenter's kwok provider, a node after Delays.Boot (KWOKNodeClass.spec.nodeRegistrationDelay); KWOK keeps it alive
//	kubelets   images on each node, pulls that take Delays.Pull, statuses and events of pods
//	CPA        replicas of placeholders by CPA's formula, from the arguments and the parameters of its Deployments
//	Workspaces Deployments as jupyter-k8s makes them
//
// KWOK's stages see one pod at a time, and whether a pod has to wait for a pull depends on what other pods of its node
// have pulled before; hence a kubelet of our own for the pods, and KWOK for the nodes alone.
//
// Time is compressed: Delays are fractions of what machines and pulls take, while the scheduler, Karpenter's batches and
// warmpool take what they take. So everything but boots and pulls weighs more than in a cluster.
package simulation
