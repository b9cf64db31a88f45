// Package docs keeps the generated parts of the documentation equal to the code.
package docs

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"warmpool.sh/webhook/config"
)

var update = flag.Bool("update", false, "write the generated pages anew")

const preface = `# Configuration reference

Written by ` + "`make docs`" + ` from the types of ` + "`webhook/config`" + `; do not edit. The file is strict: an unknown field, an unknown rule or a
bad value is refused, with the line and the field. [An example](../pools-and-placement.md#a-configuration-with-everything-in-it)
has most of them.
`

// TestConfigurationReference keeps reference/configuration.md equal to the types of package config, their comments and the defaults
// that the code sets.
func TestConfigurationReference(t *testing.T) {
	r := reference{types: packageTypes(t), written: map[string]bool{}, defaults: defaults(t)}
	r.text.WriteString(preface)
	r.write(t, reflect.TypeFor[config.WarmPoolConfiguration](), "")
	want := r.text.String()
	if *update {
		require.NoError(t, os.WriteFile("reference/configuration.md", []byte(want), 0o600))
		return
	}
	got, err := os.ReadFile("reference/configuration.md")
	require.NoError(t, err)
	assert.Equal(t, want, string(got), "run make docs")
}

// packageTypes has the source of each type of package config.
func packageTypes(t *testing.T) map[string]*doc.Type {
	t.Helper()
	files := token.NewFileSet()
	names, err := filepath.Glob("../webhook/config/*.go")
	require.NoError(t, err)
	var parsed []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, name, nil, parser.ParseComments)
		require.NoError(t, err)
		parsed = append(parsed, file)
	}
	pkg, err := doc.NewFromFiles(files, parsed, "warmpool.sh/webhook/config")
	require.NoError(t, err)
	found := map[string]*doc.Type{}
	for _, typ := range pkg.Types {
		found[typ.Name] = typ
	}
	return found
}

// defaults are what a configuration that says nothing has, by type and field.
func defaults(t *testing.T) map[string]any {
	t.Helper()
	c := config.WarmPoolConfiguration{Pools: []config.Pool{{Size: &config.Size{}}}}
	config.SetDefaults(&c)
	found := map[string]any{}
	for name, value := range map[string]any{
		"WarmPoolConfiguration": c, "Placeholders": c.Placeholders, "Workspaces": c.Workspaces, "Pool": c.Pools[0], "Sizing": c.Pools[0].Sizing, "Size": *c.Pools[0].Size,
	} {
		content, err := yaml.Marshal(value)
		require.NoError(t, err)
		var fields map[string]any
		require.NoError(t, yaml.Unmarshal(content, &fields))
		for field, value := range fields {
			found[name+"."+field] = value
		}
	}
	return found
}

type reference struct {
	types    map[string]*doc.Type
	defaults map[string]any
	written  map[string]bool
	text     strings.Builder
}

// write appends a type with its fields, and then the types of these that it has not written yet.
func (r *reference) write(t *testing.T, typ reflect.Type, path string) {
	t.Helper()
	source, ok := r.types[typ.Name()]
	require.True(t, ok, typ.Name())
	r.written[typ.Name()] = true
	fmt.Fprintf(&r.text, "\n## %s\n\n", typ.Name())
	if path != "" {
		fmt.Fprintf(&r.text, "`%s`: ", path)
	}
	fmt.Fprintf(&r.text, "%s\n\n| Field | Type | Default | |\n|---|---|---|---|\n", line(source.Doc))
	comments := fieldComments(t, source)
	for field := range typ.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous {
			fmt.Fprintf(&r.text, "| `apiVersion` | string | required | `%s` |\n| `kind` | string | required | `%s` |\n", config.APIVersion, config.Kind)
			continue
		}
		require.NotEmpty(t, name, field.Name)
		fmt.Fprintf(&r.text, "| `%s` | %s | %s | %s |\n", name, r.typeName(field.Type), r.defaultOf(t, field, typ.Name(), name, options), comments[field.Name])
	}
	r.values(typ)
	for field := range typ.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if nested := r.nested(field.Type); nested != nil && !field.Anonymous && !r.written[nested.Name()] {
			r.write(t, nested, strings.TrimPrefix(path+"."+name+strings.Repeat("[]", depth(field.Type)), "."))
		}
	}
}

// values lists what a field may say whose type is a string with few values.
func (r *reference) values(typ reflect.Type) {
	var all []string
	for field := range typ.Fields() {
		for element := field.Type; ; element = element.Elem() {
			if element.Kind() == reflect.String && r.types[element.Name()] != nil && !r.written[element.Name()] {
				r.written[element.Name()] = true
				all = append(all, fmt.Sprintf("- `%s`: %s. %s", element.Name(), strings.Join(constants(r.types[element.Name()]), ", "), line(r.types[element.Name()].Doc)))
			}
			if !slices.Contains([]reflect.Kind{reflect.Slice, reflect.Map, reflect.Pointer}, element.Kind()) {
				break
			}
		}
	}
	if len(all) > 0 {
		fmt.Fprintf(&r.text, "\n%s\n", strings.Join(all, "\n"))
	}
}

// nested is the struct of package config that a field holds, or nil.
func (r *reference) nested(typ reflect.Type) reflect.Type {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || r.types[typ.Name()] == nil || typ.PkgPath() != reflect.TypeFor[config.Pool]().PkgPath() {
		return nil
	}
	return typ
}

func depth(typ reflect.Type) int {
	if typ.Kind() == reflect.Slice {
		return 1
	}
	return 0
}

func (r *reference) typeName(typ reflect.Type) string {
	switch {
	case typ.Kind() == reflect.Pointer:
		return r.typeName(typ.Elem())
	case typ.Kind() == reflect.Slice:
		return "list of " + r.typeName(typ.Elem())
	case typ.Kind() == reflect.Map && typ.Name() == "":
		return "map of " + r.typeName(typ.Key()) + " to " + r.typeName(typ.Elem())
	}
	if r.nested(typ) != nil {
		return fmt.Sprintf("[%s](#%s)", typ.Name(), strings.ToLower(typ.Name()))
	}
	return typ.Name()
}

func (r *reference) defaultOf(t *testing.T, field reflect.StructField, typ, name, options string) string {
	t.Helper()
	value, ok := r.defaults[typ+"."+name]
	switch text, isText := value.(string); {
	case options == "":
		return "required"
	case !ok || r.nested(field.Type) != nil:
		return ""
	case isText:
		return "`" + text + "`"
	}
	content, err := json.Marshal(value)
	require.NoError(t, err)
	return "`" + string(content) + "`"
}

// fieldComments are the comments of a struct's fields; fields on neighbouring lines share the one above them.
func fieldComments(t *testing.T, typ *doc.Type) map[string]string {
	t.Helper()
	spec, ok := typ.Decl.Specs[0].(*ast.TypeSpec)
	require.True(t, ok)
	body, ok := spec.Type.(*ast.StructType)
	require.True(t, ok, typ.Name)
	found := map[string]string{}
	for _, field := range body.Fields.List {
		for _, name := range field.Names {
			found[name.Name] = strings.ReplaceAll(line(field.Doc.Text()), "|", `\|`)
		}
	}
	return found
}

// constants are the values of the constants of a type, as the file has them.
func constants(typ *doc.Type) []string {
	var found []string
	for _, group := range typ.Consts {
		for _, spec := range group.Decl.Specs {
			if values, ok := spec.(*ast.ValueSpec); ok {
				for _, value := range values.Values {
					found = append(found, "`"+strings.Trim(types.ExprString(value), `"`)+"`")
				}
			}
		}
	}
	return found
}

// line is a text in one line.
func line(text string) string { return strings.Join(strings.Fields(text), " ") }
