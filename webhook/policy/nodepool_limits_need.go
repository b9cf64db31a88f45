package policy

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"warmpool.sh/webhook/placement"
)

// mostReplicas is the largest number of pods that one placeholder of the pool may have, and whose, in words. Only one
// counts: whether several placeholders share nodes is not known here.
func (a *Audit) mostReplicas(pool *placement.Pool) (most int, who string) {
	for _, o := range a.of(pool.Config.Name) {
		replicas := 1
		if o.Deployment.Spec.Replicas != nil {
			replicas = int(*o.Deployment.Spec.Replicas)
		}
		text := fmt.Sprintf("the %d replicas of placeholder %s/%s", replicas, o.Namespace, o.Name)
		if s := a.scaledBy(o); s != nil && s.params.most() > 0 {
			replicas = s.params.most()
			text = fmt.Sprintf("the %d replicas that %s may set for placeholder %s", replicas, s, o.Name)
		}
		if replicas > most {
			most, who = replicas, text
		}
	}
	return most, who
}

// most is the largest number of replicas that CPA sets; 0: it is not bounded, or not known.
func (p *paramsSource) most() int {
	switch {
	case p.autoscalerParams == nil:
		return 0
	case p.Linear != nil:
		return p.Linear.Max
	case p.Ladder != nil:
		most := 0
		for _, steps := range [][][2]int{p.Ladder.Cores, p.Ladder.Nodes} {
			for _, step := range steps {
				most = max(most, step[1])
			}
		}
		return most
	default:
		return 0
	}
}

// leastOf is the least that so many nodes have together of what a limit counts, and in words what each has; 0 where it
// is not known. What is allocatable is less than the capacity that Karpenter counts.
func leastOf(a *Audit, pool *placement.Pool, name corev1.ResourceName, nodes int) (need resource.Quantity, each string) {
	if name == nodesLimit {
		return *resource.NewQuantity(int64(nodes), resource.DecimalSI), ""
	}
	var least *resource.Quantity
	for _, shape := range a.sizes.Pool(pool.Config.Name).Shapes {
		offer, known := shape.Offers[name]
		if !known {
			return resource.Quantity{}, ""
		}
		if least == nil || offer.Allocatable.Cmp(*least) < 0 {
			least = &offer.Allocatable
		}
	}
	if least == nil {
		return resource.Quantity{}, ""
	}
	need = least.DeepCopy()
	if !need.Mul(int64(nodes)) {
		return resource.Quantity{}, ""
	}
	return need, fmt.Sprintf(" (%s a node or more)", least.String())
}
