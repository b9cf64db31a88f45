package chart

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/prepull"
	"warmpool.sh/webhook/sizing"
)

// Prefix is that of placeholders' names in the chart: the name of the pool follows.
const Prefix = "spaces-placeholder-"

// deriving is one pool whose placeholders are looked for.
type deriving struct {
	*Proposal
	facts     *cluster.Snapshot
	evaluator *policy.Evaluator
	cfg       *config.WarmPoolConfiguration
	pool      *config.Pool
	sizes     *sizing.PoolSizes
	path      string
}

// addPlaceholders gives each pool what keeps it warm: the placeholders that it has, else one that fits its nodes.
func (p *Proposal) addPlaceholders(facts *cluster.Snapshot, now time.Time) error {
	cfg := &p.Values.WarmPoolConfiguration
	for i := range cfg.Pools {
		cfg.Pools[i].NodeTaints = p.nodeTaints(&cfg.Pools[i], facts, fmt.Sprintf("pools[%d].nodeTaints", i))
	}
	evaluator, complete, err := p.evaluator(facts, now)
	if err != nil {
		return err
	}
	sizes, scalings := sizing.NewTracker(complete).Update(facts), evaluator.Scalings()
	for i := range cfg.Pools {
		d := &deriving{Proposal: p, facts: facts, evaluator: evaluator, cfg: complete, pool: &cfg.Pools[i],
			sizes: sizes.Pool(cfg.Pools[i].Name), path: fmt.Sprintf("pools[%d]", i)}
		plan := d.plan()
		there := d.there()
		var placeholders []Placeholder
		for _, deployment := range there {
			placeholders = append(placeholders, d.takeOver(deployment, fmt.Sprintf("%s.placeholders[%d]", d.path, len(placeholders))))
		}
		if len(there) == 0 {
			placeholders = append(placeholders, d.fresh(plan))
		}
		d.scale(placeholders, there, scalings[d.pool.Name])
		p.Values.Pools = append(p.Values.Pools, Pool{Pool: *d.pool, Taints: d.taints(), Placeholders: placeholders})
	}
	return nil
}

// taints are those that the pool's NodePools declare, and an accelerator's where none does: beyond nodeTaints. An
// accelerator's has no value here: whatever it is, it is tolerated.
func (d *deriving) taints() []string {
	pool := d.evaluator.Pools().Get(d.pool.Name)
	for _, unknown := range pool.Unknown {
		d.remark(d.path, "%s%s", Decide, unknown)
	}
	var found []string
	for _, taint := range pool.Taints {
		text := taintText(taint)
		if full := taint.Key + "=" + taint.Value + ":" + string(taint.Effect); !slices.Contains(d.pool.NodeTaints, full) && !slices.Contains(d.pool.NodeTaints, text) {
			found = append(found, text)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func taintText(taint corev1.Taint) string {
	if _, known := placement.Glob(taint.Key); known || taint.Value == "" {
		return taint.Key + ":" + string(taint.Effect)
	}
	return taint.Key + "=" + taint.Value + ":" + string(taint.Effect)
}

// stays reports whether a taint keeps pods off a node for as long as the node is there: others come and go with its state.
func stays(taint corev1.Taint) bool {
	for _, prefix := range []string{"node.kubernetes.io/", "karpenter.sh/", "node.cloudprovider.kubernetes.io/"} {
		if strings.HasPrefix(taint.Key, prefix) {
			return false
		}
	}
	return taint.Effect != corev1.TaintEffectPreferNoSchedule
}

// nodeTaints adds the taints that all nodes of the pool have and that nothing declares.
func (p *Proposal) nodeTaints(pool *config.Pool, facts *cluster.Snapshot, path string) []string {
	key, values := pool.Label()
	declared := map[string]bool{}
	for _, name := range pool.NodePools {
		if np := facts.NodePools.Get(name); np != nil {
			for _, taint := range slices.Concat(np.Taints, np.StartupTaints) {
				declared[taint.Key] = true
			}
		}
	}
	counts, nodes := map[string]int{}, 0
	for _, node := range facts.Nodes.All() {
		if value, ok := node.Labels[key]; !ok || !slices.Contains(values, value) {
			continue
		}
		nodes++
		for _, taint := range node.Spec.Taints {
			if stays(taint) && !declared[taint.Key] {
				counts[fmt.Sprintf("%s=%s:%s", taint.Key, taint.Value, taint.Effect)]++
			}
		}
	}
	found := slices.Clone(pool.NodeTaints)
	for _, taint := range sortedKeys(counts) {
		text := strings.Replace(taint, "=:", ":", 1)
		switch {
		case slices.Contains(found, text):
		case counts[taint] == nodes:
			found = append(found, text)
			p.remark(path, "all %d nodes have %s, which no NodePool declares", nodes, text)
		default:
			p.remark(path, "%s%d of %d nodes have %s; is it to be tolerated?", Decide, counts[taint], nodes, text)
		}
	}
	return found
}

// there are the placeholders of the pool that the cluster has.
func (d *deriving) there() []*appsv1.Deployment {
	var found []*appsv1.Deployment
	for _, deployment := range d.facts.Deployments.Defined() {
		if !d.evaluator.IsPlaceholder(deployment) {
			continue
		}
		if pool := d.evaluator.Placeholder(deployment, deployment.Namespace).Pool; pool != nil && pool.Config.Name == d.pool.Name {
			found = append(found, deployment)
		}
	}
	return found
}

// takeOver writes a placeholder that is there as a value, and says what changes of it.
func (d *deriving) takeOver(deployment *appsv1.Deployment, path string) Placeholder {
	spec := &deployment.Spec.Template.Spec
	p := Placeholder{Requests: requestsOf(spec), Replicas: deployment.Spec.Replicas, Images: d.images(path)}
	if len(d.pool.Accelerators) > 0 && len(extended(p.Requests)) == 0 {
		p.Requests[d.device()] = resource.MustParse("1")
		d.remark(path+".requests", "changes: it holds no accelerator now, so that a Workspace would find no free one")
	}
	if p.Replicas == nil {
		p.Replicas = new(int32(1))
	}
	if deployment.Name != Prefix+d.pool.Name {
		p.Name = deployment.Name
	}
	if pulled := prepull.Pulled(spec.InitContainers); len(p.Images) == 0 {
		p.Images = pulled
	} else if !slices.Equal(p.Images, pulled) {
		d.remark(path+".images", "changes: it pulls %s now; these are the templates' images", strings.Join(pulled, ", "))
	}
	d.exempt(deployment.Name, p.Images, path)
	d.remark(path, "Deployment %s/%s as it is: name, size and number", deployment.Namespace, deployment.Name)
	d.TakesOver = true
	if own := d.cfg.Placeholders.Namespace; deployment.Namespace != own {
		d.remark(path, "changes: it is in namespace %s, and the chart makes it in %s; delete the old one then", deployment.Namespace, own)
	}
	want := map[string]string{"app": "spaces-placeholder", "type": strings.TrimPrefix(deployment.Name, Prefix)}
	if deployment.Spec.Selector == nil || fmt.Sprint(deployment.Spec.Selector.MatchLabels) != fmt.Sprint(want) || len(deployment.Spec.Selector.MatchExpressions) > 0 {
		d.remark(path, "changes: its selector, which cannot be changed. Before helm install:\n"+deleteDeployment, deployment.Namespace, deployment.Name)
	}
	return p
}

// requestsOf are the largest requests of the containers; of devices, limits are requests.
func requestsOf(spec *corev1.PodSpec) corev1.ResourceList {
	found := corev1.ResourceList{}
	for i := range spec.Containers {
		for _, list := range []corev1.ResourceList{spec.Containers[i].Resources.Requests, extended(spec.Containers[i].Resources.Limits)} {
			for name, quantity := range list {
				if sum, ok := found[name]; !ok || sum.Cmp(quantity) < 0 {
					found[name] = quantity
				}
			}
		}
	}
	return found
}

func extended(list corev1.ResourceList) corev1.ResourceList {
	found := corev1.ResourceList{}
	for name, quantity := range list {
		if placement.IsExtendedResource(name) {
			found[name] = quantity
		}
	}
	return found
}

// exempt has the rule of moving tags leave a placeholder alone: which image is meant is not to be guessed.
func (d *deriving) exempt(name string, images []string, path string) {
	for _, image := range images {
		if _, moves := policy.MutableTag(image); !moves {
			continue
		}
		d.remark(path+".images", "%sthe tag of %s moves: nodes pull other images at other times. Name one that stays, and take the exemption out", Decide, image)
		d.Values.Exemptions = append(d.Values.Exemptions, config.Exemption{
			Rules: []string{"placeholder-image-tag"}, Namespace: d.cfg.Placeholders.Namespace, Name: name, Reason: "as it was when warmpool init looked",
		})
		return
	}
}

// images are those of the pool's templates, as Workspaces will ask for them.
func (d *deriving) images(path string) []string {
	sources := prepull.Sources(d.pool, &d.cfg.Workspaces, d.facts.Templates)
	for _, source := range sources {
		if source.Problem != "" {
			d.remark(path+".images", "%s%s", Decide, source.Problem)
		}
	}
	return prepull.Images(sources, prepull.Record{}, nil)
}
