package apiserver_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

type placementCase struct {
	name         string
	nodeSelector map[string]string
	affinity     string // spec.affinity.nodeAffinity as sent
	want         string // as stored; empty: as sent
	// field that is against the pool: a pod gets a warning, a placeholder is refused for it.
	field string
	// conflict: the pod can never run in its pool, and stays as it is.
	conflict bool
}

const (
	amd64  = `{key: kubernetes.io/arch, operator: In, values: [amd64]}`
	disk   = `{key: disk, operator: Exists}`
	mixed  = `{key: karpenter.sh/nodepool, operator: In, values: [cpu-a, gpu-a]}`
	other  = `{key: karpenter.sh/nodepool, operator: In, values: [cpu-a]}`
	notOur = `{key: karpenter.sh/nodepool, operator: NotIn, values: [gpu-a]}`

	heavy = `preferredDuringSchedulingIgnoredDuringExecution: [` +
		`{weight: 100, preference: {matchExpressions: [` + gpuA + `]}}, {weight: 1, preference: {matchExpressions: [` + disk + `]}}]`
)

var placementCases = []placementCase{
	{name: "no affinity at all", want: requiredTerm(gpuA)},
	{name: "empty node affinity", affinity: `{}`, want: requiredTerm(gpuA)},
	{name: "requirement is added to each term, in their order",
		affinity: terms(`{matchExpressions: [`+amd64+`]}`, `{matchExpressions: [`+disk+`]}`),
		want:     terms(`{matchExpressions: [`+amd64+`, `+gpuA+`]}`, `{matchExpressions: [`+disk+`, `+gpuA+`]}`)},
	{name: "one of two terms has it", affinity: terms(`{matchExpressions: [`+disk+`]}`, `{matchExpressions: [`+gpuA+`]}`),
		want: terms(`{matchExpressions: [`+disk+`, `+gpuA+`]}`, `{matchExpressions: [`+gpuA+`]}`)},
	{name: "a term with fields only", affinity: terms(`{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}`),
		want: terms(`{matchFields: [{key: metadata.name, operator: In, values: [n1]}], matchExpressions: [` + gpuA + `]}`)},
	{name: "an empty term matches nothing and stays so", affinity: terms(`{}`, `{matchExpressions: [`+disk+`]}`),
		want: terms(`{}`, `{matchExpressions: [`+disk+`, `+gpuA+`]}`)},
	{name: "preferred pool is not enough", affinity: `{` + heavy + `}`,
		want: `{` + heavy + `, requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [` + gpuA + `]}]}}`},
	{name: "preferred terms stay beside required ones",
		affinity: `{` + heavy + `, requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [` + disk + `]}]}}`,
		want:     `{` + heavy + `, requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [` + disk + `, ` + gpuA + `]}]}}`},
	{name: "several pools are narrowed to its own", affinity: requiredTerm(mixed), want: requiredTerm(mixed + `, ` + gpuA)},
	{name: "the pool in the nodeSelector", nodeSelector: map[string]string{"karpenter.sh/nodepool": "gpu-a"}},
	{name: "the pool in the nodeSelector and terms of other things", nodeSelector: map[string]string{"karpenter.sh/nodepool": "gpu-a"}, affinity: requiredTerm(disk)},
	{name: "the pool in the term", affinity: requiredTerm(disk + `, ` + gpuA)},
	{name: "nodeSelector of other things", nodeSelector: map[string]string{"kubernetes.io/arch": "amd64"}, want: requiredTerm(gpuA)},
	{name: "another pool in the nodeSelector", nodeSelector: map[string]string{"karpenter.sh/nodepool": "cpu-a"},
		conflict: true, field: "spec.template.spec.nodeSelector"},
	{name: "another pool in the term", affinity: requiredTerm(other), conflict: true, field: nodeAffinityField + ".nodeSelectorTerms[0]"},
	{name: "its pool excluded", affinity: requiredTerm(notOur), conflict: true, field: nodeAffinityField + ".nodeSelectorTerms[0]"},
	{name: "its pool excluded by one of two terms", affinity: terms(`{matchExpressions: [`+notOur+`]}`, `{matchExpressions: [`+disk+`]}`),
		want:  terms(`{matchExpressions: [`+notOur+`]}`, `{matchExpressions: [`+disk+`, `+gpuA+`]}`),
		field: nodeAffinityField + ".nodeSelectorTerms[0]"},
}

func terms(terms ...string) string {
	text := ""
	for _, term := range terms {
		text += term + ", "
	}
	return `{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [` + text + `]}}`
}

func (c *placementCase) apply(t *testing.T, spec *corev1.PodSpec, affinity string) {
	t.Helper()
	spec.NodeSelector = c.nodeSelector
	if affinity == "" {
		return
	}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	spec.Affinity.NodeAffinity = fromYAML[*corev1.NodeAffinity](t, affinity)
}

func TestPlacement(t *testing.T) {
	u := newUser(t)
	for _, s := range subjects {
		for _, c := range placementCases {
			t.Run(c.name+"/"+s.name, func(t *testing.T) {
				object, spec := s.make(t, "gpu-a", gpu)
				c.apply(t, spec, c.affinity)
				o := u.create(t, u.namespace(t), object)
				if _, isPlaceholder := object.(*appsv1.Deployment); isPlaceholder && c.field != "" {
					denied(t, o.err, cause{c.field, "excludes pool gpu-a"})
					return
				}
				if c.want != "" {
					c.apply(t, o.spec, c.want)
				}
				if !c.conflict {
					o.spec.Tolerations = append(o.spec.Tolerations, fromYAML[[]corev1.Toleration](t, gpuATolerations)...)
				}
				o.same(t)
				if c.field == "" {
					warned(t, o.warnings)
				} else {
					warned(t, o.warnings, "workspace-pool-conflict: …excludes pool gpu-a")
				}
			})
		}
	}
}

// Placed once, an object is left alone: what comes out is what goes in again.
func TestPlacedObjectsStay(t *testing.T) {
	u := newUser(t)
	for _, s := range subjects {
		for _, c := range placementCases {
			if c.field != "" {
				continue
			}
			t.Run(c.name+"/"+s.name, func(t *testing.T) {
				object, spec := s.make(t, "gpu-a", gpu)
				affinity := c.want
				if affinity == "" {
					affinity = c.affinity
				}
				c.apply(t, spec, affinity)
				spec.Tolerations = fromYAML[[]corev1.Toleration](t, gpuATolerations)
				o := u.create(t, u.namespace(t), object)
				o.same(t)
				assert.Empty(t, o.warnings)
			})
		}
	}
}
