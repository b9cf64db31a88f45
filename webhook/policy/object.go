package policy

import (
	"iter"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/sizing"
)

// Object is a Workspace pod or a placeholder Deployment as rules see it. Pod and Deployment are shallow copies of
// what was handed in: rules replace their parts and leave the original unchanged.
type Object struct {
	about
	e *Evaluator

	// Deployment or Pod is set. The name of a pod that is still to get one is empty.
	Deployment *appsv1.Deployment
	Pod        *corev1.Pod
	// Choice is the object's pool, or why it has none.
	placement.Choice

	// Meta and Spec are the pod's, or the pod template's.
	Meta *metav1.ObjectMeta
	Spec *corev1.PodSpec
	// path and pointer lead to the pod, or to the pod template.
	path    *field.Path
	pointer string

	rules []int // that are about such objects, by their indices in the table

	// before is what an update changes; see Updates.
	before *appsv1.Deployment

	own, replaced report

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

// Pod makes the Object of a Workspace pod. namespace is the request's: pods from controllers carry none.
func (e *Evaluator) Pod(pod *corev1.Pod, namespace string) *Object {
	shallow := *pod
	o := &Object{
		Pod: &shallow, Meta: &shallow.ObjectMeta, Spec: &shallow.Spec, e: e, rules: workspaceRules,
		Choice: e.pools.ForPodIn(namespace, pod.Labels, &pod.Spec),
	}
	return o.named("Pod", namespace, pod.Name)
}

// Placeholder makes the Object of a placeholder Deployment. namespace is the request's.
func (e *Evaluator) Placeholder(d *appsv1.Deployment, namespace string) *Object {
	shallow := *d
	template := &shallow.Spec.Template
	o := &Object{
		Deployment: &shallow, Meta: &template.ObjectMeta, Spec: &template.Spec, e: e, rules: placeholderRules,
		Choice: e.pools.ForPlaceholder(d), path: templatePath, pointer: "/spec/template",
	}
	return o.named("Deployment", namespace, d.Name)
}

func (o *Object) named(kind, namespace, name string) *Object {
	o.Ref, o.pool = Ref{Kind: kind, Namespace: namespace, Name: name}, poolName(o.Pool)
	o.report = &o.own
	return o
}

// PoolName is the name of the object's pool; empty when it has none.
func (o *Object) PoolName() string { return o.pool }

func poolName(pool *placement.Pool) string {
	if pool == nil {
		return ""
	}
	return pool.Config.Name
}

// Updates says what a placeholder was before the update that is judged; nil at CREATE.
func (o *Object) Updates(before *appsv1.Deployment) *Object {
	o.before = before
	return o
}

// Replaced are findings about the values that Mutate replaced by others. They deny nothing.
func (o *Object) Replaced() []Finding { return o.replaced.values() }

// replace reports that Mutate replaced a value.
func (o *Object) replace(path *field.Path, value, format string, args ...any) {
	about{Ref: o.Ref, pool: o.pool, report: &o.replaced}.invalid(path, value, format, args...).atMostWarn()
}

// fit says how the object's node selection stands to its pool, which it has.
func (o *Object) fit() placement.Fit {
	if o.judged.fit == nil {
		fit := o.Pool.Fit(o.Spec)
		o.judged.fit = &fit
	}
	return *o.judged.fit
}

// Request is the object's effective request.
func (o *Object) Request() corev1.ResourceList {
	if o.judged.request == nil {
		o.judged.request = sizing.Request(o.Spec, o.Namespace, o.e.facts)
	}
	return o.judged.request
}

// Paths that every judgement needs; a Path is never changed.
var (
	podSpecPath      = field.NewPath("spec")
	templatePath     = field.NewPath("spec", "template")
	templateSpecPath = templatePath.Child("spec")
	namespacePath    = field.NewPath("metadata", "namespace")
	replicasPath     = field.NewPath("spec", "replicas")
)

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

// specPointer is the JSON pointer of the pod spec.
func (o *Object) specPointer() string { return o.pointer + "/spec" }

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

// containers yields the init containers and then the others, with their paths.
func (o *Object) containers() iter.Seq2[*field.Path, *corev1.Container] {
	return func(yield func(*field.Path, *corev1.Container) bool) {
		for i := range o.Spec.InitContainers {
			if !yield(o.specPath("initContainers").Index(i), &o.Spec.InitContainers[i]) {
				return
			}
		}
		for i := range o.Spec.Containers {
			if !yield(o.specPath("containers").Index(i), &o.Spec.Containers[i]) {
				return
			}
		}
	}
}

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
