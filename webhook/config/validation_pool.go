package config

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// nodeClaim is what makes a node a pool's: a label and its value.
type nodeClaim struct{ key, value string }

func (v *validator) pools(p *field.Path, pools []Pool) {
	if len(pools) == 0 {
		v.required(p, "list at least one pool")
	}
	names := map[string]int{}
	claims := map[nodeClaim]int{}
	for i := range pools {
		at, pool := p.Index(i), &pools[i]
		v.syntax(at.Child("name"), pool.Name, labelValue)
		if j, ok := names[pool.Name]; ok && pool.Name != "" {
			v.duplicate(at.Child("name"), pool.Name, fmt.Sprintf("%s has this name already; give each pool its own", p.Index(j)))
		} else {
			names[pool.Name] = i
		}
		v.nodes(at, pool, func(at *field.Path, claim nodeClaim) {
			j, taken := claims[claim]
			if !taken || j == i {
				claims[claim] = i
				return
			}
			v.invalid(at, claim.value, fmt.Sprintf("pool %q (%s) and pool %q both claim the nodes with label %s=%s, and a node belongs to one pool only; take them from one of the two",
				pools[j].Name, p.Index(j), pool.Name, claim.key, claim.value))
		})
		v.pool(at, pool)
	}
}

// nodes judges which nodes are the pool's and hands on each of its claims once.
func (v *validator) nodes(p *field.Path, pool *Pool, claim func(*field.Path, nodeClaim)) {
	list, label := p.Child("nodePools"), p.Child("nodeLabel")
	switch {
	case len(pool.NodePools) > 0 && pool.NodeLabel != nil:
		v.add(field.Forbidden(label, "the pool has nodePools too; keep one of nodePools and nodeLabel"))
	case len(pool.NodePools) == 0 && pool.NodeLabel == nil:
		v.required(list, "name at least one Karpenter NodePool, or set nodeLabel where nodes do not come from Karpenter")
	}
	v.unique(list, pool.NodePools, func(at *field.Path, name string) {
		// A NodePool's name is a label value too, which is shorter than other names may be.
		if v.syntax(at, name, objectName) && v.syntax(at, name, labelValue) {
			claim(at, nodeClaim{NodePoolLabel, name})
		}
	})
	if pool.NodeLabel == nil {
		return
	}
	validKey := v.syntax(label.Child("key"), pool.NodeLabel.Key, labelKey)
	values := label.Child("values")
	if len(pool.NodeLabel.Values) == 0 {
		v.required(values, "list the values of the label that mark the pool's nodes")
	}
	v.unique(values, pool.NodeLabel.Values, func(at *field.Path, value string) {
		// A label without a value is common: the role of a node.
		valid := value == "" || v.syntax(at, value, labelValue)
		if validKey && valid {
			claim(at, nodeClaim{pool.NodeLabel.Key, value})
		}
	})
}

func (v *validator) pool(p *field.Path, pool *Pool) {
	v.unique(p.Child("accelerators"), pool.Accelerators, v.accelerator)
	v.taints(p.Child("nodeTaints"), pool.NodeTaints)
	if pool.NamespaceSelector != nil {
		v.namespaceSelector(p.Child("namespaceSelector"), pool.NamespaceSelector)
	}
	v.templates(p.Child("templates"), pool.Templates)
	enum(v, p.Child("prePull"), pool.PrePull, PrePullDefault, PrePullAllowed)
	enum(v, p.Child("autoscaler"), pool.Autoscaler, Karpenter, ClusterAutoscaler, NoAutoscaler)
	v.actions(p.Child("rules"), pool.Rules)
	enum(v, p.Child("sizing", "mode"), pool.Sizing.Mode, Coexist, Exclusive)
	v.allocatable(p.Child("sizing", "allocatable"), pool.Sizing.Allocatable)
	if pool.Size != nil {
		v.size(p.Child("size"), pool.Size)
	}
}

func (v *validator) namespaceSelector(p *field.Path, s *metav1.LabelSelector) {
	if len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0 {
		v.invalid(p, s, "an empty selector lets every namespace use the pool; leave it out to say so")
		return
	}
	v.labelSelector(p, s)
}

func (v *validator) accelerator(p *field.Path, glob string) {
	if glob == "" {
		v.required(p, "must not be empty; a pool without accelerators has an empty list")
	} else if _, err := path.Match(glob, ""); err != nil {
		v.invalid(p, glob, "is no pattern: a [ has no ], or a \\ nothing after it; write one such as nvidia.com/*")
	} else if !strings.Contains(glob, "/") {
		v.invalid(p, glob, "matches no extended resource, as * does not match a slash; write VENDOR/NAME, for example nvidia.com/*")
	}
}

func (v *validator) taints(p *field.Path, taints []string) {
	first := map[corev1.Taint]int{}
	for i, s := range taints {
		at := p.Index(i)
		taint, err := ParseTaint(s)
		if err != nil {
			v.invalid(at, s, err.Error())
			continue
		}
		if taint.Effect == corev1.TaintEffectPreferNoSchedule {
			v.invalid(at, s, "PreferNoSchedule keeps no pod away and warmpool tolerates only NoSchedule and NoExecute; remove the entry")
			continue
		}
		if j, ok := first[taint]; ok {
			v.duplicate(at, s, fmt.Sprintf("%s is the same; remove one of them", p.Index(j)))
			continue
		}
		first[taint] = i
	}
}

func (v *validator) templates(p *field.Path, templates []TemplateRef) {
	first := map[TemplateRef]int{}
	for i, ref := range templates {
		at := p.Index(i)
		v.syntax(at.Child("namespace"), ref.Namespace, dnsLabel)
		v.syntax(at.Child("name"), ref.Name, objectName)
		if j, ok := first[ref]; ok {
			v.duplicate(at, ref.String(), fmt.Sprintf("%s is the same; remove one of them", p.Index(j)))
			continue
		}
		first[ref] = i
	}
}

// allocatable judges names too: sizing takes a misspelt resource for one that no one asks for, and checks nothing.
func (v *validator) allocatable(p *field.Path, resources corev1.ResourceList) {
	known := []string{"cpu", "memory", "pods", "ephemeral-storage"}
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		at, s := p.Key(string(name)), string(name)
		if !strings.Contains(s, "/") && !slices.Contains(known, s) && !strings.HasPrefix(s, corev1.ResourceHugePagesPrefix) {
			v.invalid(at, s, "nodes have no such resource"+didYouMean(s, known)+"; extended resources are written VENDOR/NAME")
		} else if len(content.IsLabelKey(s)) > 0 {
			v.invalid(at, s, "is no resource name; write VENDOR/NAME, for example nvidia.com/gpu")
		}
		if quantity := resources[name]; quantity.Sign() <= 0 {
			v.invalid(at, quantity.String(), "must be greater than 0; leave out what the nodes do not have")
		}
	}
}
