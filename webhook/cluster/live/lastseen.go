package live

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/cluster/lastseen"
)

// lastSeen reads one ConfigMap, whose content is many facts.
type lastSeen struct {
	*kind[corev1.ConfigMap]
	configMaps cluster.Facts[corev1.ConfigMap]
}

// followLastSeen adds the kind to the others.
func (r *Reader) followLastSeen() {
	l := &lastSeen{}
	l.kind = &kind[corev1.ConfigMap]{
		name: "ConfigMap", log: r.log, changed: r.signal, convert: as[corev1.ConfigMap], same: sameObject[corev1.ConfigMap],
		facts: func(*cluster.Snapshot) *cluster.Facts[corev1.ConfigMap] { return &l.configMaps },
	}
	l.reset(notSynced, false)
	r.builtin = append(r.builtin, watched{l, &corev1.ConfigMap{}})
	r.rebuild()
}

func (l *lastSeen) refresh(next *cluster.Snapshot) (changed, settled bool) {
	if changed, settled = l.kind.refresh(next); !changed {
		return false, settled
	}
	if !l.configMaps.Known() {
		next.LastSeen = cluster.Unknown[corev1.Node](l.configMaps.Reason())
		return true, settled
	}
	var data map[string]string
	for _, configMap := range l.configMaps.All() { // there is one at most
		data = configMap.Data
	}
	before := next.LastSeen
	next.LastSeen = lastseen.Update(before, data)
	for _, pool := range next.LastSeen.AllMalformed() {
		if reason := next.LastSeen.Malformed(pool); reason != before.Malformed(pool) {
			l.log.Info("cannot read what nodes of a pool looked like", "pool", pool, "reason", reason)
		}
	}
	return true, settled
}

// onlyLastSeen limits a cache of ConfigMaps to the one that is read, as the rights do.
func onlyLastSeen(namespace string) cache.ByObject {
	return cache.ByObject{Namespaces: map[string]cache.Config{
		namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", lastseen.Name)},
	}}
}
