package audits

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/audit"
	"warmpool.sh/webhook/cluster/live"
)

// FieldManager is the field manager of report objects.
const FieldManager = "warmpool-audit"

// reportAPI is an API of report objects: the kind in namespaces and the one of the cluster.
type reportAPI struct {
	schema.GroupVersion
	namespaced, ofCluster string
}

// reportAPIs are those that warmpool knows, the best first. The second has the same fields but for the source of the whole.
var reportAPIs = []reportAPI{
	{schema.GroupVersion{Group: "openreports.io", Version: "v1alpha1"}, "Report", "ClusterReport"},
	{schema.GroupVersion{Group: "wgpolicyk8s.io", Version: "v1alpha2"}, "PolicyReport", "ClusterPolicyReport"},
}

// publish brings the report objects of the best API that the cluster serves to what the report says, and removes those of
// the other and those without results. written counts the writes.
func publish(ctx context.Context, api client.Client, report *audit.Report) (written int, err error) {
	wanted, err := objectsOf(report)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, reports := range reportAPIs {
		for _, kind := range []string{reports.namespaced, reports.ofCluster} {
			gvk := reports.WithKind(kind)
			mapping, err := api.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
			if meta.IsNoMatchError(err) {
				continue
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("find %s: %w", gvk.GroupKind(), err))
				continue
			}
			namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
			s := sync{api: api, kind: gvk, wanted: wanted[namespaced]}
			errs = append(errs, s.run(ctx))
			written += s.written
			delete(wanted, namespaced) // so that they stand in one API only
		}
	}
	return written, errors.Join(errs...)
}

// objectsOf are the wanted objects by namespace: those of namespaces under true, the cluster's under false.
func objectsOf(report *audit.Report) (map[bool]map[string]*unstructured.Unstructured, error) {
	ofCluster, ofNamespaces := report.OpenReports()
	wanted := map[bool]map[string]*unstructured.Unstructured{true: {}, false: {}}
	add := func(object client.Object) error {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return fmt.Errorf("make report object: %w", err)
		}
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
		wanted[object.GetNamespace() != ""][object.GetNamespace()] = &unstructured.Unstructured{Object: content}
		return nil
	}
	for _, object := range ofNamespaces {
		if err := add(object); err != nil {
			return nil, err
		}
	}
	if len(ofCluster.Results) > 0 {
		return wanted, add(ofCluster)
	}
	return wanted, nil
}

// sync makes the objects of a kind those that are wanted.
type sync struct {
	api     client.Client
	kind    schema.GroupVersionKind
	wanted  map[string]*unstructured.Unstructured // by namespace
	written int
}

func (s *sync) run(ctx context.Context) error {
	found := map[string]bool{}
	var errs []error
	err := s.each(ctx, func(have *unstructured.Unstructured) {
		namespace := have.GetNamespace()
		found[namespace] = true
		want := s.wanted[namespace]
		if want == nil {
			errs = append(errs, s.remove(ctx, have))
			return
		}
		want = s.of(want)
		keepTimes(want, have)
		if !same(want, have) {
			errs = append(errs, s.apply(ctx, want))
		}
	})
	if apierrors.IsNotFound(err) {
		return nil // its CRD has just gone
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", s.kind.GroupKind(), err)
	}
	for _, namespace := range slices.Sorted(maps.Keys(s.wanted)) {
		if !found[namespace] {
			errs = append(errs, s.apply(ctx, s.of(s.wanted[namespace])))
		}
	}
	return errors.Join(errs...)
}

// each lists the objects that may be warmpool's: its rights end at their name.
func (s *sync) each(ctx context.Context, visit func(*unstructured.Unstructured)) error {
	_, err := live.InPages(func(limit int64, token string) (runtime.Object, error) {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(s.kind.GroupVersion().WithKind(s.kind.Kind + "List"))
		err := s.api.List(ctx, page, client.MatchingFields{"metadata.name": audit.ReportName}, client.Limit(limit), client.Continue(token))
		return page, err
	}, func(object runtime.Object) error {
		have, ok := object.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("got %T", object)
		}
		visit(have)
		return nil
	})
	return err
}

// of is a wanted object as one of the kind.
func (s *sync) of(want *unstructured.Unstructured) *unstructured.Unstructured {
	want.SetGroupVersionKind(s.kind)
	if s.kind.Group != reportAPIs[0].Group {
		unstructured.RemoveNestedField(want.Object, "source")
	}
	return want
}

func (s *sync) apply(ctx context.Context, want *unstructured.Unstructured) error {
	err := s.api.Apply(ctx, client.ApplyConfigurationFromUnstructured(want), client.FieldOwner(FieldManager), client.ForceOwnership)
	switch {
	case err == nil:
		s.written++
		return nil
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // the CRD or the namespace goes away, and its findings with it
	default:
		return fmt.Errorf("write %s of %s: %w", s.kind.GroupKind(), scopeOf(want), err)
	}
}

// remove deletes an object that warmpool has made, and no other of that name.
func (s *sync) remove(ctx context.Context, have *unstructured.Unstructured) error {
	if have.GetLabels()[audit.ManagedByLabel] != audit.ReportName {
		return nil
	}
	err := client.IgnoreNotFound(s.api.Delete(ctx, have, client.Preconditions{UID: new(have.GetUID())}))
	if err != nil {
		return fmt.Errorf("delete %s of %s: %w", s.kind.GroupKind(), scopeOf(have), err)
	}
	s.written++
	return nil
}

func scopeOf(object *unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return "the cluster"
	}
	return "namespace " + object.GetNamespace()
}

// keepTimes gives each result the time when it was first found.
func keepTimes(want, have *unstructured.Unstructured) {
	times := map[string]any{}
	for _, result := range resultsOf(have) {
		times[resultKey(result)] = result["timestamp"]
	}
	for _, result := range resultsOf(want) {
		if since := times[resultKey(result)]; since != nil {
			result["timestamp"] = since
		}
	}
}

// resultsOf are the results themselves, not copies.
func resultsOf(object *unstructured.Unstructured) []map[string]any {
	list, _ := object.Object["results"].([]any)
	var results []map[string]any
	for _, item := range list {
		if result, ok := item.(map[string]any); ok {
			results = append(results, result)
		}
	}
	return results
}

// resultKey is what a result keeps while its message changes.
func resultKey(result map[string]any) string {
	field, _, _ := unstructured.NestedString(result, "properties", "field")
	return fmt.Sprintf("%q %q %v", result["rule"], field, result["resources"])
}

// same reports whether the object has all that is wanted; others may have added labels.
func same(want, have *unstructured.Unstructured) bool {
	for key, value := range want.Object {
		if key != "metadata" && !equality.Semantic.DeepEqual(value, have.Object[key]) {
			return false
		}
	}
	for key, value := range want.GetLabels() {
		if have.GetLabels()[key] != value {
			return false
		}
	}
	return true
}
