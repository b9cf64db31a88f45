package manifest

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	componentversion "k8s.io/component-base/version"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/spelling"
)

// builtin holds the kinds that Kubernetes itself owns. client-go's own scheme will not do: libraries add theirs to it.
var builtin = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	return scheme
}()

// kubernetes is the version whose kinds builtin holds.
var kubernetes = utilversion.MustParseGeneric(componentversion.DefaultKubeBinaryVersion)

// clusterScoped are the kinds of builtin that have no namespace.
var clusterScoped = sets.New(
	"Namespace", "Node", "PersistentVolume", "ComponentStatus",
	"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
	"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	"StorageVersion", "StorageVersionMigration",
	"TokenReview", "SelfSubjectReview", "SubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview",
	"CertificateSigningRequest", "ClusterTrustBundle",
	"FlowSchema", "PriorityLevelConfiguration",
	"IngressClass", "IPAddress", "ServiceCIDR", "RuntimeClass",
	"ClusterRole", "ClusterRoleBinding",
	"DeviceClass", "DeviceTaintRule", "ResourceSlice", "ResourcePoolStatusRequest",
	"PriorityClass", "StorageClass", "CSIDriver", "CSINode", "VolumeAttachment", "VolumeAttributesClass",
)

// check reports what makes content no object that an API server would take, as far as files can tell. The error begins
// with the field.
func check(content map[string]any) error {
	for _, name := range []string{"apiVersion", "kind"} {
		if value, ok := content[name].(string); !ok || value == "" {
			return fmt.Errorf("%s: missing, or not a string; every object needs apiVersion and kind", name)
		}
	}
	object := unstructured.Unstructured{Object: content}
	version, err := schema.ParseGroupVersion(object.GetAPIVersion())
	if err != nil {
		return fmt.Errorf("apiVersion: %w; want group/version, such as apps/v1", err)
	}
	if _, isList := content["items"]; !isList {
		if err := checkKind(version.WithKind(object.GetKind())); err != nil {
			return err
		}
	}
	var meta metav1.PartialObjectMetadata
	if _, err := cluster.Decode(map[string]any{"metadata": content["metadata"]}, &meta); err != nil {
		return err
	}
	return nil
}

// checkKind reports a kind of Kubernetes's own groups that no API server of its version serves. Other groups are other
// people's, who may serve what they like.
func checkKind(kind schema.GroupVersionKind) error {
	if !builtin.IsGroupRegistered(kind.Group) {
		return nil
	}
	if isObject(kind) {
		removed, gone := removedIn(kind)
		if !gone {
			return nil
		}
		err := fmt.Errorf("apiVersion: %s %s is not served any more since Kubernetes %s", kind.GroupVersion(), kind.Kind, removed)
		if now, ok := nearest(kind); ok && now.Kind == kind.Kind {
			return fmt.Errorf("%w; use %s", err, now.GroupVersion())
		}
		return fmt.Errorf("%w; remove the object", err)
	}
	if strings.HasSuffix(kind.Kind, "List") {
		return fmt.Errorf("items: missing; a %s needs items", kind.Kind)
	}
	err := fmt.Errorf("kind: %s has no %q", kind.GroupVersion(), kind.Kind)
	switch near, ok := nearest(kind); {
	case !ok:
		return fmt.Errorf("%w; check apiVersion and kind", err)
	case near.Kind == kind.Kind:
		return fmt.Errorf("%w; use apiVersion %s", err, near.GroupVersion())
	default:
		return fmt.Errorf("%w; did you mean %q (apiVersion %s)?", err, near.Kind, near.GroupVersion())
	}
}

// isObject tells whether Kubernetes has objects of the kind; the scheme has options and lists too.
func isObject(kind schema.GroupVersionKind) bool {
	known, ok := builtin.AllKnownTypes()[kind]
	return ok && reflect.PointerTo(known).Implements(reflect.TypeFor[metav1.Object]())
}

func removedIn(kind schema.GroupVersionKind) (*utilversion.Version, bool) {
	object, err := builtin.New(kind)
	if err != nil {
		return nil, false
	}
	lifecycle, ok := object.(interface{ APILifecycleRemoved() (major, minor int) })
	if !ok {
		return nil, false
	}
	major, minor := lifecycle.APILifecycleRemoved()
	removed := utilversion.MustParseGeneric(fmt.Sprintf("%d.%d", major, minor))
	return removed, kubernetes.AtLeast(removed)
}

// nearest finds the served kind that was probably meant: first by name, then in the same group, then the best version.
func nearest(kind schema.GroupVersionKind) (schema.GroupVersionKind, bool) {
	type candidate struct {
		schema.GroupVersionKind
		distance, group int
	}
	var candidates []candidate
	wanted := strings.ToLower(kind.Kind)
	for known := range builtin.AllKnownTypes() {
		distance, ok := spelling.Edits(strings.ToLower(known.Kind), wanted, min(2, len(wanted)/3))
		if !ok || !isObject(known) {
			continue
		}
		if _, gone := removedIn(known); gone {
			continue
		}
		group := 1
		if known.Group == kind.Group {
			group = 0
		}
		candidates = append(candidates, candidate{known, distance, group})
	}
	if len(candidates) == 0 {
		return schema.GroupVersionKind{}, false
	}
	return slices.MinFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.group, b.group), cmp.Compare(a.Kind, b.Kind),
			version.CompareKubeAwareVersionStrings(b.Version, a.Version), cmp.Compare(a.Group, b.Group))
	}).GroupVersionKind, true
}
