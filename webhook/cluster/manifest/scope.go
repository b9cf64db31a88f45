package manifest

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"warmpool.sh/webhook/cluster"
)

// scope tells whether objects of a kind have a namespace.
type scope int

const (
	scopeUnknown scope = iota
	scopeCluster
	scopeNamespaced
)

// others are kinds of other people's groups: those that rules go by, and some that stand beside these.
var others = map[schema.GroupKind]scope{
	{Group: "kueue.x-k8s.io", Kind: "ClusterQueue"}:                   scopeCluster,
	{Group: "kueue.x-k8s.io", Kind: "ResourceFlavor"}:                 scopeCluster,
	{Group: "kueue.x-k8s.io", Kind: "LocalQueue"}:                     scopeNamespaced,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: scopeCluster,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:             scopeCluster,
	{Group: "karpenter.k8s.aws", Kind: "AWSNodeTemplate"}:             scopeCluster,
	{Group: "cert-manager.io", Kind: "ClusterIssuer"}:                 scopeCluster,
}

func init() {
	for _, k := range cluster.InFiles {
		if of := k.Describe(); of.IsCustom() && of.Namespaced {
			others[of.GroupKind()] = scopeNamespaced
		} else if of.IsCustom() {
			others[of.GroupKind()] = scopeCluster
		}
	}
}

// scopeOf is the scope of a kind, where it is known without a CustomResourceDefinition.
func scopeOf(kind schema.GroupKind) scope {
	switch {
	case kind.Group == cluster.WorkspaceTemplateGroupKind.Group:
		return scopeNamespaced
	case kind.Group == cluster.NodePoolGroupKind.Group, strings.HasSuffix(kind.Kind, "NodeClass"):
		return scopeCluster
	case !builtin.IsGroupRegistered(kind.Group):
		return others[kind]
	case clusterScoped.Has(kind.Kind):
		return scopeCluster
	default:
		return scopeNamespaced
	}
}

// place gives the object the namespace in which an API server would have it. assumed tells that it names none itself.
func (s scope) place(u *unstructured.Unstructured, namespace string) (assumed bool) {
	switch {
	case s == scopeCluster && u.GetNamespace() != "":
		u.SetNamespace("")
	case s == scopeNamespaced && u.GetNamespace() == "":
		u.SetNamespace(namespace)
		return true
	}
	return false
}

// placeByDefinitions places the objects of those kinds that CustomResourceDefinitions among the objects define.
func placeByDefinitions(objects []Object, namespace string) {
	defined := map[schema.GroupKind]scope{}
	for _, o := range objects {
		if o.GetKind() != "CustomResourceDefinition" || o.GroupVersionKind().Group != "apiextensions.k8s.io" {
			continue
		}
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		switch scoped, _, _ := unstructured.NestedString(o.Object, "spec", "scope"); scoped {
		case "Cluster":
			defined[schema.GroupKind{Group: group, Kind: kind}] = scopeCluster
		case "Namespaced":
			defined[schema.GroupKind{Group: group, Kind: kind}] = scopeNamespaced
		}
	}
	if len(defined) == 0 {
		return
	}
	for _, o := range objects {
		if kind := o.GroupVersionKind().GroupKind(); scopeOf(kind) == scopeUnknown {
			defined[kind].place(o.Unstructured, namespace)
		}
	}
}

// orDefault is the namespace that kubectl takes where none is given.
func orDefault(namespace string) string {
	if namespace == "" {
		return metav1.NamespaceDefault
	}
	return namespace
}
