package cluster

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/quantity"
)

// checkQuantities follows the content along the type it is to be decoded into and returns an error for the first quantity
// that fails quantity.Check. It looks by itself, because decoders go on to the quantities after a value of a wrong type,
// or stop there and leave them unseen.
func checkQuantities(p *field.Path, content any, typ reflect.Type) error {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch value := content.(type) {
	case string:
		if typ == reflect.TypeFor[resource.Quantity]() {
			if err := quantity.Check(value); err != nil {
				return fmt.Errorf("%s: %w", p, err)
			}
		}
	case []any:
		if typ.Kind() != reflect.Slice {
			return nil
		}
		for i, item := range value {
			if err := checkQuantities(p.Index(i), item, typ.Elem()); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if member, ok := memberType(typ, name); ok {
				if err := checkQuantities(p.Child(name), value[name], member); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// memberType is the type into which a JSON object's member of the name is decoded.
func memberType(typ reflect.Type, name string) (reflect.Type, bool) {
	switch typ.Kind() {
	case reflect.Map:
		return typ.Elem(), true
	case reflect.Struct:
		for f := range typ.Fields() {
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if tag == name {
				return f.Type, true
			}
			if f.Anonymous && tag == "" {
				if member, ok := memberType(f.Type, name); ok {
					return member, true
				}
			}
		}
	default: // has no members
	}
	return nil, false
}
