// Package certs gives the webhook server its serving certificate, and keeps the
// webhook configurations trusting it.
//
// [Mode] is the one switch. In the modes "cert-manager" and "files" a folder is
// watched, and others take care of caBundle. In the mode "embedded" nothing has to
// be installed or mounted:
//
//   - a CA lives in a Secret, which every replica creates if it is absent,
//     replaces if it is not valid and renews at two thirds of its life; it can
//     sign for the Service alone;
//   - every replica signs a serving certificate for itself, in memory, and
//     renews it at two thirds of its life, too;
//   - every replica keeps caBundle of our webhook configurations equal to the
//     CA, and for a while to the one before it.
//
// A certificate is served only when the API servers can verify it: at the first
// start not before caBundle is written, so that "ready" means trusted, and after
// a change of the CA not before the API servers had time to read the new
// caBundle. No leader is needed: replicas write only when something differs, and
// the API server lets one of them win.
//
// Both are valid from five minutes ago, because clocks differ.
//
// To change the CA, delete the Secret. The CA before it stays trusted until it
// expires; to distrust a leaked one, delete the Secret again a minute later.
//
// In every mode [Certs.Ready] is a readiness check that does what an API server
// does: it verifies the certificate that is served under caBundle of our webhook
// configurations. The metric warmpool_certificate_expiry_timestamp_seconds tells
// when that certificate expires.
//
// The folders embedded and cert-manager beside this package are the kustomize
// components of these modes.
//
// # Permissions
//
// Every mode needs these, with the default names, to check caBundle. Lists and
// watches are of one object by name, so resourceNames covers them. The mode "files"
// goes without; then no one checks caBundle:
//
//	ClusterRole
//	  apiGroups: [admissionregistration.k8s.io]
//	  resources: [mutatingwebhookconfigurations]
//	  resourceNames: [warmpool, warmpool-pods]
//	    verbs: [list, watch]
//	  resources: [validatingwebhookconfigurations]
//	  resourceNames: [warmpool]
//	    verbs: [list, watch]
//
// The mode "embedded" needs exactly these in addition:
//
//	Role in Options.Namespace
//	  apiGroups: [""]  resources: [secrets]  verbs: [create]
//	  apiGroups: [""]  resources: [secrets]  resourceNames: [warmpool-ca]
//	    verbs: [list, watch, update]
//	ClusterRole
//	  apiGroups: [admissionregistration.k8s.io]
//	  resources: [mutatingwebhookconfigurations]
//	  resourceNames: [warmpool, warmpool-pods]
//	    verbs: [patch]
//	  resources: [validatingwebhookconfigurations]
//	  resourceNames: [warmpool]
//	    verbs: [patch]
package certs
