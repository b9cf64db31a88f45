package placement

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apilabels "k8s.io/apimachinery/pkg/labels"

	"warmpool.sh/webhook/config"
)

// admitted selects the namespaces whose Workspaces may use a pool; nil: all.
func admitted(cfg *config.Pool) apilabels.Selector {
	if cfg.NamespaceSelector == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(cfg.NamespaceSelector)
	if err != nil {
		return apilabels.Nothing() // validation has refused it
	}
	return selector
}

// ForPodIn is ForPod for a pod of a namespace, which may not use every pool. What asks for such a pool, by its label or by its
// template, has none; what asks for none gets the first that it may use.
func (p *Pools) ForPodIn(namespace string, podLabels map[string]string, spec *corev1.PodSpec) Choice {
	choice := p.ForPod(podLabels, spec)
	if choice.Pool == nil || choice.Pool.namespaces == nil {
		return choice
	}
	barred, unknown := p.barred(namespace, choice.Pool)
	if !barred {
		return choice
	}
	first := choice.Pool
	if !p.asksFor(first, podLabels, choice.Accelerators) {
		for _, pool := range p.offering(choice.Accelerators) {
			if barred, _ := p.barred(namespace, pool); !barred {
				choice.Pool = pool
				return choice
			}
		}
	}
	choice.Pool, choice.ByTemplate, choice.Barred, choice.Unknown = nil, false, true, unknown
	choice.Problem = fmt.Sprintf("namespace %s may not use pool %s, which is for namespaces with %s", namespace, first.Config.Name, first.namespaces)
	if unknown {
		choice.Problem = fmt.Sprintf("the labels of namespace %s are not known (%s), and pool %s is for namespaces with %s",
			namespace, p.whyUnknown(namespace), first.Config.Name, first.namespaces)
	}
	return choice
}

// barred tells whether a namespace may not use a pool; unknown, that it is not known whether it may.
func (p *Pools) barred(namespace string, pool *Pool) (barred, unknown bool) {
	if pool.namespaces == nil {
		return false, false
	}
	known := p.namespaces.Get(namespace)
	if known == nil {
		return true, true
	}
	return !pool.namespaces.Matches(apilabels.Merge(known.Labels, apilabels.Set{corev1.LabelMetadataName: namespace})), false
}

func (p *Pools) whyUnknown(namespace string) string {
	switch malformed := p.namespaces.Malformed(namespace); {
	case !p.namespaces.Known():
		return "Namespaces: " + p.namespaces.Reason()
	case malformed != "":
		return malformed
	default:
		return "it " + p.namespaces.Missing()
	}
}

// asksFor tells whether a pod asks for the pool that was chosen for it, by its label or by its template.
func (p *Pools) asksFor(pool *Pool, podLabels map[string]string, accelerators []string) bool {
	if podLabels[PoolLabel] == pool.Config.Name {
		return true
	}
	listing, _ := p.byTemplate(p.offering(accelerators), config.TemplateRef{Namespace: podLabels[TemplateNamespaceLabel], Name: podLabels[templateNameLabel]})
	return listing == pool
}
