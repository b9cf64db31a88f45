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

// Source gives the Evaluator in force, or nil while the cluster's facts are not known.
type Source func() *policy.Evaluator

// Handlers are the HTTP handlers by path. self is the name of the user that warmpool is to the API server; empty where it
// writes nothing.
func Handlers(source Source, self string, log logr.Logger) map[string]http.Handler {
	l := newLimiter()
	return map[string]http.Handler{
		PodsPath:                 limited(l, &handler[pod]{name: "pods", kind: podKind, log: log, source: source, admit: admitPod, failOpen: true}),
		MutatePlaceholdersPath:   limited(l, &handler[appsv1.Deployment]{name: "mutate-placeholders", kind: deploymentKind, log: log, source: source, admit: mutatePlaceholder(self)}),
		ValidatePlaceholdersPath: limited(l, &handler[appsv1.Deployment]{name: "validate-placeholders", kind: deploymentKind, log: log, source: source, admit: validatePlaceholder}),
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
	defer func() {
		if fault := recover(); fault != nil {
			if err, ok := fault.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(fault) // the server's own way to hang up
			}
			h.countError()
			// Of what type only: the value may quote an object.
			h.log.Error(fmt.Errorf("panic with a %T", fault), "admission failed", "webhook", h.name, "stack", string(debug.Stack()))
			http.Error(w, "warmpool failed on this request; its log has the cause", http.StatusInternalServerError)
		}
	}()
	req, release, err := readReview[T](w, r, h.limiter)
	defer release()
	if err == nil && (req.Kind != h.kind || req.SubResource != "") {
		err = badRequest("this webhook judges %s and no subresource; the webhook configuration sent %.100q", h.kind.String(), req.Kind.String()+" "+req.SubResource)
	}
	if err == nil && req.Object == nil && req.Operation != admissionv1.Delete {
		err = badRequest("the request has no object")
	}
	if err != nil {
		h.refuse(w, err)
		return
	}
	response, err := h.respond(req)
	if err != nil {
		h.countError()
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := answer(w, response); err != nil {
		h.log.V(1).Info("the API server hung up", "webhook", h.name, "error", err.Error())
	}
}

// refuse answers a request that is no admission review, or for which there is no room.
func (h *handler[T]) refuse(w http.ResponseWriter, err error) {
	code := http.StatusBadRequest
	if httpErr := (*httpError)(nil); errors.As(err, &httpErr) {
		code = httpErr.code
	}
	if code == http.StatusTooManyRequests {
		refusedTotal.WithLabelValues(h.name).Inc()
		w.Header().Set("Retry-After", retryAfter)
	} else {
		h.countError()
	}
	http.Error(w, err.Error(), code)
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
			o.ByWarmpool()
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
	return Verdict{Pool: o.PoolName(), Findings: ValidatePlaceholder(e, o, req.OldObject)}
}
