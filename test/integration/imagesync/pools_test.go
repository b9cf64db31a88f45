package imagesync_test

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"warmpool.sh/webhook/config"
)

var aliases = map[string]string{"uv": "registry.example/uv:2026.1"}

// nodesOf are the nodes by pool; other pools have none, and their placeholders stay pending.
var nodesOf = map[string]int{"rollout": 3, "stuck": 2, "status": 1}

// pools of all tests. Each has one template, of its own name, but for the last ones.
var pools = append(simplePools("rollout", "quiet", "burst", "unknown", "foreign", "containerless", "opted-out", "paused", "zero",
	"elsewhere", "client-side", "server-side", "conflict", "unseen", "kubectl", "dry-run", "stuck", "workspace", "argo", "flux", "left-out", "left-out-server",
	"either-a", "either-b", "recreated", "status", "refused", "exempt"),
	pool("pair", "pair-a", "pair-b"), allowed(pool("allowed", "allowed")), off(pool("rule-off", "rule-off")))

// simplePools are pools with a template each, and for each another one, see passed.

func simplePools(names ...string) []config.Pool {
	var made []config.Pool
	for _, name := range names {
		made = append(made, pool(name, name), pool("after-"+name, "after-"+name))
	}
	return made
}

func pool(name string, from ...string) config.Pool {
	p := config.Pool{
		Name: name, NodeLabel: &config.NodeLabel{Key: poolLabel, Values: []string{name}}, Autoscaler: config.NoAutoscaler,
		Sizing: config.Sizing{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"),
			corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"), corev1.ResourcePods: resource.MustParse("30"),
		}},
	}
	for _, template := range from {
		p.Templates = append(p.Templates, config.TemplateRef{Namespace: templates, Name: template})
	}
	return p
}

func off(p config.Pool) config.Pool {
	p.Rules = map[string]config.Action{"placeholder-image": config.Off}
	return p
}

func allowed(p config.Pool) config.Pool {
	p.PrePull = config.PrePullAllowed
	return p
}
