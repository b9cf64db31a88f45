package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"warmpool.sh/webhook/policy"
)

// Paths under which the handlers are served; the webhook configurations in manifests name them.
const (
	PodsPath                 = "/mutate-pods"
	MutatePlaceholdersPath   = "/mutate-placeholders"
	ValidatePlaceholdersPath = "/validate-placeholders"
)

// Names of the webhooks in metrics and logs.
const (
	podsName                 = "pods"
	mutatePlaceholdersName   = "mutate-placeholders"
	validatePlaceholdersName = "validate-placeholders"
)

// Source gives the Evaluator in force, or nil while the cluster's facts are not known.
type Source func() *policy.Evaluator

// Handlers are the HTTP handlers by path. self is the name of the user that warmpool is to the API server; empty where it
// writes nothing.
func Handlers(source Source, self string, log logr.Logger) map[string]http.Handler {
	l := newLimiter()
	for _, name := range []string{podsName, mutatePlaceholdersName, validatePlaceholdersName} {
		refusedTotal.WithLabelValues(name) // from the start 0, not absent
	}
	return map[string]http.Handler{
		PodsPath:                 &handler[pod]{name: podsName, kind: podKind, log: log, source: source, admit: admitPod, failOpen: true, limiter: l},
		MutatePlaceholdersPath:   &handler[appsv1.Deployment]{name: mutatePlaceholdersName, kind: deploymentKind, log: log, source: source, admit: mutatePlaceholder(self), limiter: l},
		ValidatePlaceholdersPath: &handler[appsv1.Deployment]{name: validatePlaceholdersName, kind: deploymentKind, log: log, source: source, admit: validatePlaceholder, limiter: l},
	}
}

var (
	podKind        = metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}
	deploymentKind = metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
)

// handler serves one webhook: it decodes the review, asks admit and answers.
type handler[T any] struct {
	name   string
	kind   metav1.GroupVersionKind
	log    logr.Logger
	source Source
	admit  func(*policy.Evaluator, *request[T]) Verdict
	// failOpen admits objects unchanged, with a warning, while the facts are not known; otherwise the failure policy decides.
	failOpen bool
	limiter  *limiter
}

// ServeHTTP answers an admission.k8s.io/v1 AdmissionReview; 4xx for what is none, 500 for a fault of warmpool's own.
func (h *handler[T]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.limiter.work(w, func(s *share) *reply { return h.judge(w, r, s) })
}

func (h *handler[T]) judge(w http.ResponseWriter, r *http.Request, s *share) (answer *reply) {
	defer func() {
		if fault := recover(); fault != nil {
			if err, ok := fault.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(fault) // the server's own way to hang up
			}
			h.countError()
			// Of what type only: the value may quote an object.
			h.log.Error(fmt.Errorf("panic with a %T", fault), "admission failed", "webhook", h.name, "stack", string(debug.Stack()))
			answer = failure("warmpool failed on this request; its log has the cause")
		}
	}()
	if !s.grow(announced(r)) {
		return h.refuse(errBusy)
	}
	req, err := readReview[T](w, r, s)
	tooMany := (*tooManyValues)(nil)
	switch {
	case err != nil && !errors.As(err, &tooMany):
		return h.refuse(err)
	case req.Kind != h.kind || req.SubResource != "":
		return h.refuse(badRequest("this webhook judges %s and no subresource; the webhook configuration sent %.100q", h.kind.String(), req.Kind.String()+" "+req.SubResource))
	case tooMany != nil:
		return admissionReply(h.unread(req, tooMany))
	case req.Object == nil && req.Operation != admissionv1.Delete:
		return h.refuse(badRequest("the request has no object"))
	}
	response, err := h.respond(req)
	if err != nil {
		h.countError()
		return failure(err.Error())
	}
	return admissionReply(response)
}

// refuse answers a request that is no admission review, or for which there is no room.
func (h *handler[T]) refuse(err error) *reply {
	answer := refusal(err)
	if answer.code == http.StatusTooManyRequests {
		refusedTotal.WithLabelValues(h.name).Inc()
	} else {
		h.countError()
	}
	return answer
}

// unread answers for an object that is too large to be decoded: as for every other fault, pods are let through unplaced,
// and placeholders are refused.
func (h *handler[T]) unread(req *request[T], err error) *admissionv1.AdmissionResponse {
	response := &admissionv1.AdmissionResponse{UID: req.UID, Allowed: h.failOpen}
	message := err.Error() + ": it is not decoded"
	if h.failOpen {
		failedOpen.WithLabelValues(reasonTooLarge).Inc()
		response.Warnings = []string{"warmpool: " + message + ", the pod is not placed and may start on a cold node"}
		return response
	}
	response.Result = &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusRequestEntityTooLarge, Reason: metav1.StatusReasonRequestEntityTooLarge,
		Message: message + "; remove what a placeholder does not need"}
	h.count(req.DryRun, response, &Verdict{})
	return response
}

func (h *handler[T]) respond(req *request[T]) (*admissionv1.AdmissionResponse, error) {
	response := &admissionv1.AdmissionResponse{UID: req.UID, Allowed: true}
	if req.Operation == admissionv1.Delete {
		return response, nil
	}
	evaluator := h.source()
	if evaluator == nil {
		if !h.failOpen {
			return nil, errors.New("warmpool has not read the cluster yet; try again in a few seconds")
		}
		failedOpen.WithLabelValues(reasonNotSynced).Inc()
		response.Warnings = []string{"warmpool has not read the cluster yet: the pod is not placed and may start on a cold node"}
		return response, nil
	}
	verdict := h.admit(evaluator, req)
	if len(verdict.Patch) > 0 {
		bytes, err := verdict.Patch.JSON()
		if err != nil {
			return nil, fmt.Errorf("encode the patch: %w", err)
		}
		patchType := admissionv1.PatchTypeJSONPatch
		response.Patch, response.PatchType = bytes, &patchType
	}
	response.Warnings = Warnings(verdict.Findings)
	if denial := Denial(schema.GroupKind{Group: h.kind.Group, Kind: h.kind.Kind}, req.Name, verdict.Findings); denial != nil {
		response.Allowed, response.Result = false, denial
		response.Patch, response.PatchType = nil, nil
		if verdict.Awaited {
			tryAgain(denial)
		}
	}
	h.count(req.DryRun, response, &verdict)
	return response, nil
}

func admitPod(e *policy.Evaluator, req *request[pod]) Verdict {
	if req.Operation != admissionv1.Create || !e.IsWorkspace(req.Object.Metadata.Labels) {
		return Verdict{}
	}
	return JudgePod(e, req.Object.typed(), req.Namespace)
}

// mutatePlaceholder fills placeholders; self is the user that is warmpool itself.
func mutatePlaceholder(self string) func(*policy.Evaluator, *request[appsv1.Deployment]) Verdict {
	return func(e *policy.Evaluator, req *request[appsv1.Deployment]) Verdict {
		if !e.IsPlaceholder(req.Object) {
			return Verdict{}
		}
		o := e.Placeholder(req.Object, req.Namespace).Updates(req.OldObject)
		if self != "" && req.UserInfo.Username == self {
			return Verdict{Pool: o.PoolName()} // it may write nothing beside what it asks for, and another replica may know more
		}
		patch, replaced := MutatePlaceholder(e, o)
		return Verdict{Pool: o.PoolName(), Patch: patch, Findings: replaced}
	}
}

// validatePlaceholder judges what is, or was, a placeholder: taking the label off does not take the rules off.
func validatePlaceholder(e *policy.Evaluator, req *request[appsv1.Deployment]) Verdict {
	wasPlaceholder := req.OldObject != nil && e.IsPlaceholder(req.OldObject)
	if !e.IsPlaceholder(req.Object) && !wasPlaceholder {
		return Verdict{}
	}
	o := e.Placeholder(req.Object, req.Namespace)
	return Verdict{Pool: o.PoolName(), Findings: ValidatePlaceholder(e, o, req.OldObject), Awaited: awaited(e, req.Object)}
}
