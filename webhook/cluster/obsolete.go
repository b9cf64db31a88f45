package cluster

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrObsolete marks an object of an API version that Karpenter 1 does not serve. It is never read as one of the version
// that is served: fields of one name are elsewhere there, or mean something else.
var ErrObsolete = errors.New("not served by Karpenter 1")

// Obsolete is an object of a Karpenter API that Karpenter 1 does not serve.
type Obsolete struct {
	Kind, Name string
	// APIVersion is what it is written in; Successor says what Karpenter 1 has instead, such as "karpenter.sh/v1 NodePool".
	APIVersion, Successor string
}

// successors are the kinds of Karpenter that had other versions, or other names, before Karpenter 1. Other kinds may be
// served in any version: NodeOverlay is v1alpha1 still.
var successors = map[schema.GroupKind]schema.GroupVersionKind{
	NodePoolGroupKind:  NodePoolGroupKind.WithVersion("v1"),
	NodeClaimGroupKind: NodeClaimGroupKind.WithVersion("v1"),
	{Group: "karpenter.sh", Kind: "Provisioner"}:          NodePoolGroupKind.WithVersion("v1"),
	{Group: "karpenter.sh", Kind: "Machine"}:              NodeClaimGroupKind.WithVersion("v1"),
	{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass"}:    {Group: "karpenter.k8s.aws", Version: "v1", Kind: "EC2NodeClass"},
	{Group: "karpenter.k8s.aws", Kind: "AWSNodeTemplate"}: {Group: "karpenter.k8s.aws", Version: "v1", Kind: "EC2NodeClass"},
}

// ObsoleteOf tells whether Karpenter 1 does not serve objects of the kind in its version; nil: it does, or the kind is
// not Karpenter's.
func ObsoleteOf(kind schema.GroupVersionKind, name string) *Obsolete {
	successor, ok := successors[kind.GroupKind()]
	earlier := strings.HasPrefix(kind.Version, "v1alpha") || strings.HasPrefix(kind.Version, "v1beta")
	if !ok || kind.Kind == successor.Kind && !earlier {
		return nil
	}
	return &Obsolete{
		Kind: kind.Kind, Name: name, APIVersion: kind.GroupVersion().String(),
		Successor: successor.GroupVersion().String() + " " + successor.Kind,
	}
}

// refuseObsolete is the error of content that Karpenter 1 does not serve.
func refuseObsolete(content map[string]any, kind schema.GroupKind) error {
	text, ok := content["apiVersion"].(string)
	if !ok {
		return nil // not said, as in tests of one part
	}
	served, err := schema.ParseGroupVersion(text)
	if err != nil || ObsoleteOf(served.WithKind(kind.Kind), "") == nil {
		return nil
	}
	return fmt.Errorf("apiVersion: %s is %w: convert it to %s", text, ErrObsolete, successors[kind].GroupVersion())
}
