package webhook

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/phrase"
	"warmpool.sh/webhook/policy"
)

// Bounds of what a client is shown beside its object, in characters and lines.
const (
	maxWarningLength = 120
	maxWarnings      = 10
	maxCauseLength   = 1000
	maxValueLength   = 200
	maxCauses        = 20
)

// Denial words the findings that deny as an Invalid status (HTTP 422) with one cause each, twenty at most; nil when none
// does.
func Denial(kind schema.GroupKind, name string, findings []policy.Finding) *metav1.Status {
	var errs field.ErrorList
	more := 0
	for i := range findings {
		f := &findings[i]
		switch {
		case f.Action != config.Deny:
		case len(errs) == maxCauses:
			more++
		default:
			errs = append(errs, causeOf(f))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	if more > 0 {
		errs[maxCauses-1].Detail += fmt.Sprintf("; %d more findings: see warmpool admit -f", more)
	}
	status := apierrors.NewInvalid(kind, name, errs).Status()
	return &status
}

func causeOf(f *policy.Finding) *field.Error {
	cause := *f.Error
	cause.Detail = fmt.Sprintf("%s. %s (rule %s)", phrase.Cut(cause.Detail, maxCauseLength-1), f.Fix, f.Rule.ID)
	if value, ok := cause.BadValue.(string); ok {
		cause.BadValue = phrase.Cut(value, maxValueLength-1)
	}
	return &cause
}

// Warnings words the findings that warn, one line of at most 120 characters each, ten at most.
func Warnings(findings []policy.Finding) []string {
	var warnings []string
	more := 0
	for i := range findings {
		f := &findings[i]
		switch {
		case f.Action != config.Warn:
		case len(warnings) == maxWarnings:
			more++
		default:
			warnings = append(warnings, phrase.Cut(f.Rule.ID+": "+f.Error.Detail, maxWarningLength-1))
		}
	}
	if more > 0 {
		warnings[maxWarnings-1] = fmt.Sprintf("warmpool: %d more findings; see warmpool admit -f", more+1)
	}
	return warnings
}
