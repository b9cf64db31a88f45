package redact

import (
	"errors"
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestError(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "canary", field.ErrorList{field.Invalid(field.NewPath("spec"), "canary", "canary")})
	forbidden := apierrors.NewForbidden(pods, "canary", errors.New("canary"))
	unreachable := &url.Error{Op: "Get", URL: "https://10.0.0.1/api/v1/namespaces/canary", Err: errors.New("connection refused")}
	for _, test := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("write canary: %w", invalid), "the API server says 422 Invalid"},
		{fmt.Errorf("write canary: %w", unreachable), "the API server does not answer: connection refused"},
		{errors.Join(invalid, fmt.Errorf("canary: %w", forbidden)), "the API server says 422 Invalid\nthe API server says 403 Forbidden"},
		{errors.New("of our own"), "of our own"},
	} {
		assert.EqualError(t, Error(test.err), test.want)
	}
	assert.NoError(t, Error(nil))
}
