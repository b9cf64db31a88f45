package policy

import (
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/prepull"
	"warmpool.sh/webhook/sizing"
)

// Object is a Workspace pod or a placeholder Deployment as rules see it. Pod and Deployment are shallow copies of
// what was handed in: rules replace their parts and leave the original unchanged.
type Object struct {
	// Subject tells which of Deployment and Pod is set.
	Subject    Subject
	Deployment *appsv1.Deployment
	Pod        *corev1.Pod
	// Namespace and Name of the object; Name is empty for a pod that is still to get one.
	Namespace, Name string
	// Choice is the object's pool, or why it has none.
	placement.Choice

	// Meta and Spec are the pod's, or the pod template's.
	Meta *metav1.ObjectMeta
	Spec *corev1.PodSpec
	// path and pointer lead to the pod, or to the pod template.
	path    *field.Path
	pointer string

	// definition is which of several definitions in files this is, from 1; 0: the only one.
	definition int

	rules   []int // that are about such objects, by their indices in the table
	facts   *cluster.Snapshot
	config  *config.WarmPoolConfiguration
	sizes   *sizing.Sizes
	pools   *placement.Pools
	sources map[string][]prepull.Source // of a placeholder
	pulled  map[string][]string         // of a Workspace pod

	warmTerms map[string]map[string]*corev1.WeightedPodAffinityTerm // of a Workspace pod

	// before is what an update changes; see Updates.
	before   *appsv1.Deployment
	replaced []Finding

	// judged is what several rules ask about the object as it is; Check starts it anew.
	judged judged
}

// judged is found out at the first question.
type judged struct {
	fit     *placement.Fit
	request corev1.ResourceList
	room    *roomFor
	labels  string
}

// fit says how the object's node selection stands to its pool, which it has.
func (o *Object) fit() placement.Fit {
	if o.judged.fit == nil {
		fit := o.Pool.Fit(o.Spec)
		o.judged.fit = &fit
	}
	return *o.judged.fit
}

// request is the object's effective request.
func (o *Object) request() corev1.ResourceList {
	if o.judged.request == nil {
		o.judged.request = sizing.Request(o.Spec, o.Namespace, o.facts)
	}
	return o.judged.request
}

// Pod makes the Object of a Workspace pod. namespace is the request's: pods from controllers carry none.
func (e *Evaluator) Pod(pod *corev1.Pod, namespace string) *Object {
	shallow := *pod
	return &Object{
		Subject: WorkspacePod, Pod: &shallow, Namespace: namespace, Name: pod.Name,
		Choice: e.pools.ForPodIn(namespace, pod.Labels, &pod.Spec),
		Meta:   &shallow.ObjectMeta, Spec: &shallow.Spec, rules: workspaceRules,
		facts: e.facts, config: e.config, sizes: e.sizes, pulled: e.pulled, warmTerms: e.warmTerms,
	}
}

// Placeholder makes the Object of a placeholder Deployment. namespace is the request's.
func (e *Evaluator) Placeholder(d *appsv1.Deployment, namespace string) *Object {
	shallow := *d
	template := &shallow.Spec.Template
	return &Object{
		Subject: PlaceholderDeployment, Deployment: &shallow, Namespace: namespace, Name: d.Name,
		Choice: e.pools.ForPlaceholder(d),
		Meta:   &template.ObjectMeta, Spec: &template.Spec,
		path: templatePath, pointer: "/spec/template", rules: placeholderRules,
		facts: e.facts, config: e.config, sizes: e.sizes, pools: e.pools, sources: e.sources,
	}
}

// in tells which of several definitions of the object this is.
func (o *Object) in(definition int) *Object {
	o.definition = definition
	return o
}

// Updates tells what a placeholder was before the update that is judged; nil at CREATE.
func (o *Object) Updates(before *appsv1.Deployment) *Object {
	o.before = before
	return o
}

// Replaced are findings about the values that Mutate replaced by others. They deny nothing.
func (o *Object) Replaced() []Finding { return o.replaced }

// replace notes that Mutate replaced a value.
func (o *Object) replace(f Finding) { o.replaced = append(o.replaced, f.atMostWarn()) }

// specPath is the field path of the pod spec or of a part of it.
func (o *Object) specPath(parts ...string) *field.Path {
	path := podSpecPath
	if o.Deployment != nil {
		path = templateSpecPath
	}
	for _, part := range parts {
		path = path.Child(part)
	}
	return path
}

// podTemplateHash is the label that a Deployment adds to its pods, another value for each revision. A template's own value
// of it is replaced.
const podTemplateHash = "pod-template-hash"

// podLabels are the labels that the Deployment's pods will have. The value of the hash stands for any: no selector can
// name it.
func (o *Object) podLabels() labels.Set {
	return labels.Merge(o.Meta.Labels, labels.Set{podTemplateHash: "?"})
}

// labelsText writes the pod's labels down for messages.
func (o *Object) labelsText() string {
	if o.judged.labels == "" {
		o.judged.labels = clip(labels.Set(o.Meta.Labels).String())
	}
	return o.judged.labels
}

// clip bounds what is quoted of an object.
func clip(text string) string {
	const most = 300
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// Paths that every judgement needs; a Path is never changed.
var (
	podSpecPath      = field.NewPath("spec")
	templatePath     = field.NewPath("spec", "template")
	templateSpecPath = templatePath.Child("spec")
)

// specPointer is the JSON pointer of the pod spec.
func (o *Object) specPointer() string { return o.pointer + "/spec" }

// annotate sets an annotation of the pod (template).
func (o *Object) annotate(patch *placement.Patch, key, value string) {
	if len(o.Meta.Annotations) == 0 {
		// metadata itself may be absent in a template.
		if equality.Semantic.DeepEqual(*o.Meta, metav1.ObjectMeta{}) {
			patch.Add(o.pointer+"/metadata", map[string]any{"annotations": map[string]string{key: value}})
		} else {
			patch.Add(o.pointer+"/metadata/annotations", map[string]string{key: value})
		}
	} else {
		patch.Add(placement.Pointer(o.pointer+"/metadata/annotations", key), value)
	}
	annotations := maps.Clone(o.Meta.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	o.Meta.Annotations = annotations
}

// Labels that mark a Deployment as a placeholder beside placement.PoolLabel.
const (
	appLabel       = "app"
	placeholderApp = "spaces-overprovisioning"
)

// IsPlaceholder tells whether the Deployment is a placeholder: labelled warmpool.sh/pool or
// app=spaces-overprovisioning, or with pods of the placeholder PriorityClass, and not the Deployment of a Workspace,
// which may carry a copy of the pool label.
func (e *Evaluator) IsPlaceholder(d *appsv1.Deployment) bool {
	if e.IsWorkspace(d.Labels) || e.IsWorkspace(d.Spec.Template.Labels) {
		return false
	}
	return LooksLikePlaceholder(d, e.config.Placeholders.PriorityClassName)
}

// LooksLikePlaceholder is IsPlaceholder without the look at Workspaces' labels, for readers that have no Evaluator yet.
func LooksLikePlaceholder(d *appsv1.Deployment, priorityClassName string) bool {
	_, labelled := d.Labels[placement.PoolLabel]
	return labelled || d.Labels[appLabel] == placeholderApp ||
		d.Spec.Template.Spec.PriorityClassName == priorityClassName
}

// prePullContainers are the indices of the init containers that pull Workspace images.
func (o *Object) prePullContainers() []int {
	var found []int
	for i := range o.Spec.InitContainers {
		if strings.HasPrefix(o.Spec.InitContainers[i].Name, prepull.Name) {
			found = append(found, i)
		}
	}
	return found
}
