package rbac_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
)

// grant is one verb on one resource, as a rule gives it.
type grant struct {
	group, resource, verb string
	namespace             string // "" is the whole cluster
	name                  string // "" is any
	role                  string // which gives it, and its file
}

func (g grant) String() string {
	return fmt.Sprintf("%s of %s, which %s grants", g.verb, object(g.group, g.resource, g.namespace, g.name), g.role)
}

func object(group, resource, namespace, name string) string {
	text := resource
	if group != "" {
		text += "." + group
	}
	if name != "" {
		text += " " + name
	}
	if namespace != "" {
		text += " in namespace " + namespace
	}
	return text
}

// allows reports whether a request may be made because of g.
func (g grant) allows(r request) bool {
	return g.group == r.group && g.resource == r.resource && g.verb == r.verb &&
		(g.namespace == "" || g.namespace == r.namespace) && (g.name == "" || g.name == r.name)
}

// narrow is larger for who is allowed less.
func (g grant) narrow() int {
	n := 0
	if g.namespace != "" {
		n += 2
	}
	if g.name != "" {
		n++
	}
	return n
}

// seen are the namespaces of the requests that need a grant.
type seen map[grant]map[string]bool

// use says which grants the requests need: of those that allow a request, the narrowest.
func use(grants []grant, requests []request) seen {
	needed := seen{}
	for _, r := range requests {
		var allowing []grant
		for _, g := range grants {
			if g.allows(r) {
				allowing = append(allowing, g)
			}
		}
		if len(allowing) == 0 {
			continue // every ServiceAccount may ask that, such as for discovery
		}
		g := slices.MaxFunc(allowing, func(a, b grant) int { return cmp.Compare(a.narrow(), b.narrow()) })
		if needed[g] == nil {
			needed[g] = map[string]bool{}
		}
		needed[g][r.namespace] = true
	}
	return needed
}

// tooMuch says, a line for each, what is granted and not needed.
func tooMuch(grants []grant, requests []request) []string {
	needed := use(grants, requests)
	var lines []string
	for _, g := range grants {
		namespaces := needed[g]
		switch {
		case len(namespaces) == 0:
			lines = append(lines, "nothing uses "+g.String())
		case g.namespace == "" && len(namespaces) == 1 && !namespaces[""]:
			for namespace := range namespaces {
				lines = append(lines, "only in namespace "+namespace+" is there use for "+g.String()+" everywhere")
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// granted are all rights that the rendered manifests give to warmpool's ServiceAccount.
func granted(root string, rendered []*unstructured.Unstructured) ([]grant, error) {
	var grants []grant
	for _, o := range rendered {
		if o.GetKind() != "ClusterRoleBinding" && o.GetKind() != "RoleBinding" {
			continue
		}
		var binding rbacv1.RoleBinding // one of the whole cluster has the same fields, and no namespace
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &binding); err != nil {
			return nil, fmt.Errorf("read %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if !slices.ContainsFunc(binding.Subjects, isWarmpool) {
			continue
		}
		role, err := roleOf(&binding, rendered)
		if err != nil {
			return nil, err
		}
		file, err := fileOf(root, role)
		if err != nil {
			return nil, err
		}
		more, err := grantsOf(role, binding.Namespace, file)
		if err != nil {
			return nil, err
		}
		grants = append(grants, more...)
	}
	return grants, nil
}

// isWarmpool reports whether a binding is for warmpool, be it by a group.
func isWarmpool(s rbacv1.Subject) bool {
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		return s.Namespace == install.Namespace && s.Name == "warmpool"
	case rbacv1.UserKind:
		return s.Name == user
	default:
		return strings.HasPrefix(s.Name, "system:serviceaccounts") || s.Name == "system:authenticated"
	}
}

func roleOf(binding *rbacv1.RoleBinding, rendered []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	for _, o := range rendered {
		if o.GetKind() == binding.RoleRef.Kind && o.GetName() == binding.RoleRef.Name && (o.GetKind() == "ClusterRole" || o.GetNamespace() == binding.Namespace) {
			return o, nil
		}
	}
	return nil, fmt.Errorf("binding %s/%s: the manifests have no %s %s", binding.Namespace, binding.Name, binding.RoleRef.Kind, binding.RoleRef.Name)
}

func grantsOf(role *unstructured.Unstructured, namespace, file string) ([]grant, error) {
	var typed rbacv1.Role // a ClusterRole has the same rules
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(role.Object, &typed); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", role.GetKind(), role.GetName(), err)
	}
	where := fmt.Sprintf("%s %s of %s", role.GetKind(), role.GetName(), file)
	var grants []grant
	for i, rule := range typed.Rules {
		if len(rule.NonResourceURLs) > 0 {
			return nil, fmt.Errorf("%s: rule %d: nonResourceURLs cannot be compared", where, i)
		}
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						grants = append(grants, grant{group: group, resource: resource, verb: verb, namespace: namespace, name: name, role: where})
					}
				}
			}
		}
	}
	return grants, nil
}

// fileOf finds the file of the repository that has a role.
func fileOf(root string, role *unstructured.Unstructured) (string, error) {
	var found []string
	look := func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "rbac.yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		objects, err := controlplane.Decode(bytes.NewReader(content))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, o := range objects {
			if o.GetKind() == role.GetKind() && o.GetName() == role.GetName() && o.GetNamespace() == role.GetNamespace() {
				file, err := filepath.Rel(root, path)
				found = append(found, file)
				return err
			}
		}
		return nil
	}
	if err := errors.Join(filepath.WalkDir(filepath.Join(root, "manifests"), look), filepath.WalkDir(filepath.Join(root, "certs"), look)); err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%s %s is in %d files called rbac.yaml: %v; it should be in one", role.GetKind(), role.GetName(), len(found), found)
	}
	return found[0], nil
}
