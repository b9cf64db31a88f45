// Command memory measures what memory warmpool takes beside a real API server that holds many nodes and pods:
//
//	go run ./test/bench/memory -nodes 5000 -pods 2000
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/bench/proc"
	"warmpool.sh/test/bench/result"
	"warmpool.sh/test/harness/controlplane"
	"warmpool.sh/test/harness/install"
)

func main() {
	nodes, pods := flag.Int("nodes", 5000, "nodes in the cluster"), flag.Int("pods", 2000, "Workspace pods in the cluster")
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	if err := run(context.Background(), *nodes, *pods); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, nodes, pods int) (err error) {
	cp, err := controlplane.Start(ctx, controlplane.Options{Measured: true, Log: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Stop()) }()
	warmpool, err := install.Up(ctx, cp, install.Options{})
	if err != nil {
		return err
	}
	admin, err := client.New(cp.Config, client.Options{})
	if err != nil {
		return err
	}
	if err := fill(ctx, admin, nodes, pods); err != nil {
		return err
	}
	// Resident memory follows the last burst down slowly: the highest of half a minute is what counts.
	var highest, last int
	for range 30 {
		time.Sleep(time.Second)
		if last, _, err = proc.Memory(warmpool.PID()); err != nil {
			return err
		}
		highest = max(highest, last)
	}
	return result.Write(os.Stdout, fmt.Sprintf("Memory/%d-nodes-and-%d-pods", nodes, pods), 1,
		result.Metric{Unit: "resident-MiB", Value: float64(highest) / 1024}, result.Metric{Unit: "last-MiB", Value: float64(last) / 1024})
}

func fill(ctx context.Context, admin client.Client, nodes, pods int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range nodes {
		group.Go(func() error { return admin.Create(ctx, node(i)) })
	}
	for i := range pods {
		group.Go(func() error { return admin.Create(ctx, pod(i)) })
	}
	return group.Wait()
}

func node(i int) *corev1.Node {
	name := fmt.Sprintf("node-%05d", i)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"karpenter.sh/nodepool": []string{"spaces-cpu", "spaces-gpu"}[i%2], corev1.LabelInstanceTypeStable: "ml.m5.12xlarge",
			corev1.LabelHostname: name, corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux", corev1.LabelTopologyZone: fmt.Sprintf("us-west-2%c", 'a'+i%3),
		}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("47810m"), corev1.ResourceMemory: resource.MustParse("193044768Ki"), corev1.ResourcePods: resource.MustParse("234"),
			},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Images:     images(),
		},
	}
}

// images are what a kubelet reports: most of a Node's size, and nothing that warmpool keeps.
func images() []corev1.ContainerImage {
	var all []corev1.ContainerImage
	for i := range 50 {
		all = append(all, corev1.ContainerImage{Names: []string{fmt.Sprintf("registry.example/team/image-%02d@sha256:%s", i, strings.Repeat("0", 64))}, SizeBytes: 1 << 30})
	}
	return all
}

func pod(i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("workspace-%05d", i), Namespace: "default", Labels: map[string]string{"workspace.jupyter.org/workspace-name": fmt.Sprintf("w-%05d", i)}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "workspace", Image: "registry.example/notebook:1", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("8Gi")},
		}}}},
	}
}
