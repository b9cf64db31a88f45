package generate

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/prepull"
)

var (
	// What templates say: complete names, a digest, an alias, a bare name, none, and garbage.
	templateImages = []string{
		"registry.example/nb:1", "registry.example/nb:1", "registry.example/nb:2", "registry.example/r:4",
		"registry.example/nb@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		"uv", "nb", "", "Not An Image",
	}
	pulledImages = append([]string{"registry.example/pull-workspace-image:1", "other.example/uv:2"}, templateImages[:4]...)
	initNames    = []string{
		"pull-workspace-image", "pull-workspace-image-2", "pull-workspace-image-3", "pull-workspace-image-02", "pull-workspace-image-x", "setup",
	}
)

// preferPods adds preferred terms for or against other pods, at times placeholders among them.
func (r Rand) preferPods(spec *corev1.PodSpec) {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	preferred := several(r, 3, func() corev1.WeightedPodAffinityTerm {
		return corev1.WeightedPodAffinityTerm{Weight: 1 + r.Int32N(100), PodAffinityTerm: corev1.PodAffinityTerm{
			TopologyKey: corev1.LabelHostname, Namespaces: several(r, 1, func() string { return pick(r, []string{"overprovisioning", "team"}) }),
			LabelSelector: pick(r, []*metav1.LabelSelector{nil, {MatchLabels: map[string]string{"app": "ph"}},
				{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: prepull.ImageLabel("registry.example/nb:1"), Operator: metav1.LabelSelectorOpExists}}}}),
		}}
	})
	if r.chance(80) {
		spec.Affinity.PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred}
	} else if spec.Affinity.PodAntiAffinity == nil {
		spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred}
	}
}

// prePull adds templates to a pool, and at times their allowed images; or takes all templates away.
func (r Rand) prePull(pool *config.Pool) {
	switch {
	case r.chance(15):
		pool.Templates = nil
	case r.chance(40):
		pool.Templates = append(pool.Templates, config.TemplateRef{Namespace: "shared", Name: "common"})
	}
	if r.chance(30) {
		pool.PrePull = config.PrePullAllowed
	}
}

func (r Rand) imageNames(workspaces *config.Workspaces) {
	if r.chance(50) {
		workspaces.ImageRegistry = new("registry.example")
	}
	if r.chance(50) {
		workspaces.ImageAliases = map[string]string{"uv": "other.example/uv:2"}
	}
}

// templates makes the WorkspaceTemplates, some of them absent or not to be read; at times all are unknown.
func (r Rand) templates() cluster.Facts[cluster.WorkspaceTemplate] {
	if r.chance(10) {
		return cluster.Unknown[cluster.WorkspaceTemplate]("no WorkspaceTemplate CRD")
	}
	known, malformed := map[string]*cluster.WorkspaceTemplate{}, map[string]string{}
	for _, name := range append([]string{"common"}, poolNames...) {
		switch {
		case r.chance(80):
			known["shared/"+name] = &cluster.WorkspaceTemplate{
				Namespace: "shared", Name: name, DefaultImage: pick(r, templateImages),
				AllowedImages: several(r, 3, func() string { return pick(r, templateImages) }),
			}
		case r.chance(50):
			malformed["shared/"+name] = "spec.defaultImage is a number"
		}
	}
	return cluster.Known(known).WithMalformed(malformed)
}

// synced makes init containers, and annotations of an earlier image sync, right or not, into a placeholder; some are
// paused or have opted out.
func (r Rand) synced(d *appsv1.Deployment) {
	spec := &d.Spec.Template.Spec
	names := append([]string(nil), initNames...)
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	if r.chance(60) {
		spec.InitContainers = nil
		for _, name := range names[:r.IntN(len(names)+1)] {
			spec.InitContainers = append(spec.InitContainers, r.puller(name))
		}
	}
	d.Annotations = map[string]string{}
	if r.chance(50) {
		images, templates := several(r, 3, func() string { return pick(r, pulledImages) }), []string{}
		for range images {
			templates = append(templates, "shared/"+pick(r, append([]string{"common"}, poolNames...)))
		}
		if r.chance(40) {
			images, templates = nil, nil
			for _, c := range spec.InitContainers {
				images, templates = append(images, c.Image), append(templates, "shared/common")
			}
		}
		d.Annotations["warmpool.sh/synced-image"], d.Annotations["warmpool.sh/synced-template"] = strings.Join(images, ","), strings.Join(templates, ",")
	}
	if r.chance(15) {
		d.Annotations["warmpool.sh/image-sync"] = pick(r, []string{"false", "true"})
	}
	d.Spec.Paused = r.chance(15)
}

func (r Rand) puller(name string) corev1.Container {
	c := r.container(name)
	c.Image, c.Command = pick(r, pulledImages), []string{"true"}
	return c
}

// Update makes what somebody might make of a placeholder: other init containers, other annotations or another field.
func (r Rand) Update(d *appsv1.Deployment) *appsv1.Deployment {
	next := d.DeepCopy()
	switch r.IntN(4) {
	case 0:
		next.Spec.Replicas = new(int32(7))
	case 1:
		next.Annotations = nil
		fallthrough
	case 2:
		for i := range next.Spec.Template.Spec.InitContainers {
			next.Spec.Template.Spec.InitContainers[i].Image = pick(r, pulledImages)
		}
	default:
		next.Spec.Template.Spec.InitContainers = r.Placeholder().Spec.Template.Spec.InitContainers
	}
	return next
}
