package live

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// note remembers why something could not be read, and returns the reason.
func (r *Reading) note(verb, name, namespace string, err error) string {
	what := fmt.Sprintf("%s %s", verb, name)
	if namespace != "" {
		what += " in namespace " + namespace
	}
	reason := "this user may not " + what
	if !apierrors.IsForbidden(err) {
		reason = fmt.Sprintf("cannot %s: %v", what, err)
		r.failures = append(r.failures, fmt.Errorf("%s: %w", what, err))
	}
	r.unreadable = append(r.unreadable, reason)
	resource, _, _ := strings.Cut(name, " ")
	if r.denied == nil {
		r.denied = map[string]bool{}
	}
	r.denied[verb+" "+resource] = true
	return reason
}

// noteGet is note for one object. Names in namespaces are somebody's arguments, which go into no log.
func (r *Reading) noteGet(resource string, key client.ObjectKey, err error) string {
	if key.Namespace == "" {
		return r.note("get", resource+" "+key.Name, "", err)
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && !apierrors.IsForbidden(err) {
		err = fmt.Errorf("%s (%d)", status.ErrStatus.Reason, status.ErrStatus.Code)
	} else if request, ok := errors.AsType[*url.Error](err); ok {
		err = request.Err
	}
	return r.note("get", resource, key.Namespace, err)
}
