package webhook

import (
	"fmt"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
)

// Bounds of what a client is shown beside its object.
const (
	maxWarningLength = 120
	maxWarnings      = 10
)

// Denial words the findings that deny as an Invalid status (HTTP 422) with one cause each; nil when none does.
func Denial(kind schema.GroupKind, name string, findings []policy.Finding) *metav1.Status {
	var errs field.ErrorList
	for i := range findings {
		f := &findings[i]
		if f.Action != config.Deny {
			continue
		}
		err := *f.Error
		err.Detail = fmt.Sprintf("%s. %s (rule %s)", err.Detail, f.Fix, f.Rule.ID)
		errs = append(errs, &err)
	}
	if len(errs) == 0 {
		return nil
	}
	status := apierrors.NewInvalid(kind, name, errs).Status()
	return &status
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
			warnings = append(warnings, shorten(f.Rule.ID+": "+f.Error.Detail))
		}
	}
	if more > 0 {
		warnings[maxWarnings-1] = fmt.Sprintf("warmpool: %d more findings; see warmpool admit -f", more+1)
	}
	return warnings
}

// shorten cuts a text after 120 characters at most.
func shorten(text string) string {
	if utf8.RuneCountInString(text) <= maxWarningLength {
		return text
	}
	return string([]rune(text)[:maxWarningLength-1]) + "…"
}
