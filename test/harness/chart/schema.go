package chart

import (
	"encoding/json"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	values "warmpool.sh/webhook/chart"
	"warmpool.sh/webhook/policy"
)

// object is a JSON schema, or a part of one.
type object = map[string]any

// Schema is values.schema.json: the types of the values with their comments. A field that has no type there is refused, by name.
func Schema(root string) (string, error) {
	s := schema{types: map[string]*doc.Type{}}
	for _, dir := range []string{"webhook/config", "webhook/chart"} {
		if err := s.read(filepath.Join(root, dir)); err != nil {
			return "", err
		}
	}
	top := s.of(reflect.TypeFor[values.Values]())
	top["$schema"] = "https://json-schema.org/draft-07/schema#"
	properties, _ := top["properties"].(object)
	properties["global"] = object{"type": "object", "description": "Of a chart that this one is part of."}
	restrict(properties)
	text, err := json.MarshalIndent(top, "", "  ")
	return string(text) + "\n", err
}

// restrict says what types do not.
func restrict(properties object) {
	at := func(path ...string) object {
		found := object{"properties": properties}
		for _, name := range path {
			if name == "[]" {
				found, _ = found["items"].(object)
			} else {
				found, _ = found["properties"].(object)[name].(object)
			}
		}
		return found
	}
	const name = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	const taint = "^[A-Za-z0-9][-A-Za-z0-9_./]*(=[-A-Za-z0-9_.]*)?:(NoSchedule|NoExecute)$"
	at("pools")["minItems"] = 1
	at("pools", "[]", "name")["pattern"], at("pools", "[]", "name")["maxLength"] = name, 40
	at("pools", "[]", "placeholders", "[]", "name")["pattern"], at("pools", "[]", "placeholders", "[]", "name")["maxLength"] = name, 63
	at("pools", "[]", "placeholders", "[]", "requests")["minProperties"] = 1
	at("pools", "[]", "placeholders", "[]", "replicas")["minimum"] = 0
	for _, list := range []string{"taints", "nodeTaints"} {
		at("pools", "[]", list, "[]")["pattern"] = taint
	}
	for _, number := range []string{"nodesPerReplica", "coresPerReplica", "min", "max"} {
		at("pools", "[]", "placeholders", "[]", "scaling", number)["minimum"] = 0
	}
	for _, rules := range []object{at("rules"), at("pools", "[]", "rules")} {
		rules["patternProperties"] = object{"^(" + strings.Join(policy.IDs(), "|") + ")$": rules["additionalProperties"]}
		rules["additionalProperties"] = false
	}
	for _, namespace := range []object{at("namespace"), at("placeholders", "namespace")} {
		namespace["pattern"], namespace["maxLength"] = name, 63
	}
}

// schema knows the sources of the types.
type schema struct {
	types map[string]*doc.Type
}

func (s *schema) read(dir string) error {
	files := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	var parsed []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		parsed = append(parsed, file)
	}
	pkg, err := doc.NewFromFiles(files, parsed, dir)
	if err != nil {
		return err
	}
	for _, typ := range pkg.Types {
		s.types[pkg.Name+"."+typ.Name] = typ
	}
	return nil
}

// of is the schema of a type.
func (s *schema) of(typ reflect.Type) object {
	switch typ {
	case reflect.TypeFor[corev1.ResourceList]():
		return object{"type": "object", "additionalProperties": object{"type": []string{"string", "number"}}}
	case reflect.TypeFor[metav1.Duration]():
		return object{"type": "string"}
	case reflect.TypeFor[metav1.LabelSelectorOperator]():
		return object{"type": "string", "enum": []any{"In", "NotIn", "Exists", "DoesNotExist"}}
	}
	switch typ.Kind() {
	case reflect.Pointer:
		return s.of(typ.Elem())
	case reflect.Slice:
		return object{"type": "array", "items": s.of(typ.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(typ.Elem())}
	case reflect.String:
		if allowed := s.constants(typ); len(allowed) > 0 {
			return object{"type": "string", "enum": allowed}
		}
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Struct:
		properties, required := object{}, []string{}
		s.fields(typ, properties, &required)
		found := object{"type": "object", "additionalProperties": false, "properties": properties}
		if len(required) > 0 {
			slices.Sort(required)
			found["required"] = slices.Compact(required)
		}
		return found
	default:
		return object{"type": "integer"}
	}
}

// fields adds those of a struct; its own hide those of the struct that it embeds.
func (s *schema) fields(typ reflect.Type, properties object, required *[]string) {
	comments := s.comments(typ)
	for _, embedded := range []bool{true, false} {
		for field := range typ.Fields() {
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case field.Anonymous != embedded || field.Type == reflect.TypeFor[metav1.TypeMeta]():
			case embedded:
				s.fields(field.Type, properties, required)
			default:
				one := s.of(field.Type)
				if comments[field.Name] != "" {
					one["description"] = comments[field.Name]
				}
				properties[name] = one
				if options == "" {
					*required = append(*required, name)
				}
			}
		}
	}
}

func (s *schema) source(typ reflect.Type) *doc.Type {
	return s.types[filepath.Base(typ.PkgPath())+"."+typ.Name()]
}

// comments are those of a struct's fields.
func (s *schema) comments(typ reflect.Type) map[string]string {
	found := map[string]string{}
	source := s.source(typ)
	if source == nil {
		return found
	}
	ast.Inspect(source.Decl, func(node ast.Node) bool {
		if field, ok := node.(*ast.Field); ok {
			for _, name := range field.Names {
				found[name.Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
			}
		}
		return true
	})
	return found
}

// constants are the values that a type of strings has.
func (s *schema) constants(typ reflect.Type) []any {
	var found []any
	source := s.source(typ)
	if source == nil {
		return nil
	}
	for _, group := range source.Consts {
		ast.Inspect(group.Decl, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok {
				if value, err := strconv.Unquote(literal.Value); err == nil {
					found = append(found, value)
				}
			}
			return true
		})
	}
	return found
}
