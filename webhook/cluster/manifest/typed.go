package manifest

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"warmpool.sh/webhook/cluster"
)

// Typed converts an object into its Go type, strictly: fields that the type does not know are errors, except in the
// status, which a cluster newer than warmpool may have written.
func Typed[T any](o Object) (*T, error) {
	typed := new(T)
	if err := decodeTyped(o, typed); err != nil {
		return nil, err
	}
	return typed, nil
}

func decodeTyped(o Object, into any) error {
	if object, ok := into.(runtime.Object); ok {
		kinds, _, err := builtin.ObjectKinds(object)
		if err == nil && !slices.Contains(kinds, o.GroupVersionKind()) {
			return fmt.Errorf("%s: is a %s of %s, want a %s of %s",
				o, o.GetKind(), o.GetAPIVersion(), kinds[0].Kind, kinds[0].GroupVersion())
		}
	}
	unknown, err := cluster.Decode(o.Object, into)
	if err != nil {
		return fmt.Errorf("%s: %w", o, err)
	}
	var errs []error
	for _, u := range unknown {
		if !strings.HasPrefix(u.Path.String(), "status.") {
			errs = append(errs, fmt.Errorf("%s: %w; correct or remove it", o, u))
		}
	}
	return join(errs)
}
