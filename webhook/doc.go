// Package webhook answers admission requests. It decodes, asks policy, and words the answer; it decides nothing.
//
// The way of the data, always in this direction:
//
//	config.Watcher   ──┐ WarmPoolConfiguration            (file, reloaded)
//	cluster/live     ──┤ Snapshot                         (informers, rebuilt off the request path)
//	                   ▼
//	Evaluators       ── policy.Evaluator, swapped whole   (atomic pointer: a request reads it once)
//	                   ▼
//	Handler          ── AdmissionReview → Object → patch and findings → AdmissionReview
//	controller/*     ── on the leader, whenever the Evaluator has changed: images, labels, starts, audits, the policy;
//	                    scaling goes by the clock: pools sized by demand
//
// Nothing on the way of a request calls the API server or waits for it.
package webhook
