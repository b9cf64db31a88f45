package policy

import schedulingv1 "k8s.io/api/scheduling/v1"

// emptyNodePriority is where Karpenter's eviction cost reaches 0: at or below it a node counts as empty.
const emptyNodePriority = -33_554_432

// defaultPriority is the priority of pods that name no class, as Workspaces' do: the global default class's, else 0.
func (e *Evaluator) defaultPriority() int32 {
	if class := e.defaultPriorityClass(); class != nil {
		return class.Value
	}
	return 0
}

// defaultPriorityClass is the class of pods that name none; nil without one.
func (e *Evaluator) defaultPriorityClass() *schedulingv1.PriorityClass {
	var global *schedulingv1.PriorityClass
	for _, class := range e.facts.PriorityClasses.All() {
		// Of several, which a race can leave, the API server takes the lowest.
		if class.GlobalDefault && (global == nil || class.Value < global.Value) {
			global = class
		}
	}
	return global
}
