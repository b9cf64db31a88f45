package cluster

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

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
		return checkMembers(p, value, typ)
	}
	return nil
}

func checkMembers(p *field.Path, content map[string]any, typ reflect.Type) error {
	switch typ.Kind() {
	case reflect.Map:
		for _, name := range slices.Sorted(maps.Keys(content)) {
			if err := checkQuantities(p.Child(name), content[name], typ.Elem()); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for _, m := range membersOf(typ) {
			if part, ok := content[m.name]; ok {
				if err := checkQuantities(p.Child(m.name), part, m.typ); err != nil {
					return err
				}
			}
		}
	default: // has no members
	}
	return nil
}

// member is one of a JSON object and the type into which it is decoded.
type member struct {
	name string
	typ  reflect.Type
}

// quantityMembers are what membersOf has found, by type: a folder has thousands of objects of few types, and most of
// what they hold is no quantity.
var quantityMembers sync.Map

// membersOf are the members of a struct that may hold quantities, by name.
func membersOf(typ reflect.Type) []member {
	if known, ok := quantityMembers.Load(typ); ok {
		if members, ok := known.([]member); ok {
			return members
		}
	}
	var members []member
	for f := range typ.Fields() {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !holdsQuantities(f.Type, map[reflect.Type]bool{}):
		case tag != "":
			members = append(members, member{tag, f.Type})
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			members = append(members, membersOf(f.Type)...)
		}
	}
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	quantityMembers.Store(typ, members)
	return members
}

// holdsQuantities tells whether a value of the type can lead to a quantity; seen are the types that were looked at.
func holdsQuantities(typ reflect.Type, seen map[reflect.Type]bool) bool {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
		typ = typ.Elem()
	}
	if typ == reflect.TypeFor[resource.Quantity]() {
		return true
	}
	if typ.Kind() != reflect.Struct || seen[typ] {
		return false
	}
	seen[typ] = true
	for f := range typ.Fields() {
		if holdsQuantities(f.Type, seen) {
			return true
		}
	}
	return false
}
