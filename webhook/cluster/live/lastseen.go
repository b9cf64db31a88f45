package live

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/cluster/lastseen"
)

// newLastSeen reads one ConfigMap, whose content is many facts.
func (r *Reader) newLastSeen() *kind {
	k := r.newKind(cluster.ConfigMaps)
	k.show = func(next *cluster.Snapshot, facts cluster.AnyFacts) {
		configMaps, ok := facts.(cluster.Facts[corev1.ConfigMap])
		if !ok || !configMaps.Known() {
			next.LastSeen = cluster.Unknown[corev1.Node](facts.Reason())
			return
		}
		var data map[string]string
		for _, configMap := range configMaps.All() { // there is one at most
			data = configMap.Data
		}
		before := next.LastSeen
		next.LastSeen = lastseen.Update(before, data)
		for _, pool := range next.LastSeen.AllMalformed() {
			if reason := next.LastSeen.Malformed(pool); reason != before.Malformed(pool) {
				r.log.Info("cannot read what nodes of a pool looked like", "pool", pool, "reason", reason)
			}
		}
	}
	return k
}

// onlyLastSeen limits a cache of ConfigMaps to the one that is read, as the rights do.
func onlyLastSeen(namespace string) cache.ByObject {
	return cache.ByObject{Namespaces: map[string]cache.Config{
		namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", lastseen.Name)},
	}}
}
