package webhook

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/policy"
)

// Verdict is what admission says about one object.
type Verdict struct {
	// Pool is the name of the object's pool; empty when it has none.
	Pool string
	// Patch fills what is absent; empty when there is nothing to change.
	Patch placement.Patch
	// Findings about the object as patched.
	Findings []policy.Finding
	// Awaited tells that the configuration which the object needs is on its way.
	Awaited bool
}

// Denied reports whether some finding denies the object.
func (v *Verdict) Denied() bool {
	for i := range v.Findings {
		if v.Findings[i].Action == config.Deny {
			return true
		}
	}
	return false
}

// JudgePod places a Workspace pod that is about to be created and judges it. namespace is the request's.
func JudgePod(e *policy.Evaluator, pod *corev1.Pod, namespace string) Verdict {
	o := e.Pod(pod, namespace)
	patch := e.Mutate(o)
	return Verdict{Pool: o.PoolName(), Patch: patch, Findings: e.Check(o)}
}

// MutatePlaceholder fills the Object of a placeholder Deployment and says what it replaced; one that is being deleted is
// left alone.
func MutatePlaceholder(e *policy.Evaluator, o *policy.Object) (placement.Patch, []policy.Finding) {
	if o.Deployment.DeletionTimestamp != nil {
		return nil, nil
	}
	patch := e.Mutate(o)
	return patch, o.Replaced()
}

// ValidatePlaceholder judges a placeholder Deployment as it is; old is nil at CREATE.
func ValidatePlaceholder(e *policy.Evaluator, o *policy.Object, old *appsv1.Deployment) []policy.Finding {
	if old == nil {
		return e.Check(o)
	}
	return e.CheckUpdate(o, e.Placeholder(old, o.Namespace))
}

// JudgePlaceholder is both: what becomes of a placeholder Deployment that somebody applies.
func JudgePlaceholder(e *policy.Evaluator, d, old *appsv1.Deployment, namespace string) Verdict {
	o := e.Placeholder(d, namespace).Updates(old)
	patch, replaced := MutatePlaceholder(e, o)
	return Verdict{Pool: o.PoolName(), Patch: patch, Findings: append(replaced, ValidatePlaceholder(e, o, old)...)}
}

// Excludes reports whether the webhook configurations leave a namespace out: no admission depends on warmpool in the
// cluster's own namespace, nor in that of warmpool itself.
func Excludes(namespace string) bool {
	return namespace == "kube-system" || namespace == "warmpool-system"
}
