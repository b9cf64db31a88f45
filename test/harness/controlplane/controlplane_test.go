package controlplane

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"warmpool.sh/test/harness/needs"
)

// parentVariable makes this test binary the parent in TestChildrenDieWithAKilledParent.
const parentVariable = "CONTROLPLANE_TEST_PARENT"

const (
	limit = 60 * time.Second
	step  = 50 * time.Millisecond
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // else controller-runtime prints a stack trace after 30 s
	if what := os.Getenv(parentVariable); what != "" {
		if err := beParent(what); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// beParent starts what is asked for, prints its folders and the ids of its processes,
// and then waits to be killed.
func beParent(what string) error {
	dirs, children, err := startForParent(context.Background(), what)
	if err != nil {
		return err
	}
	line := strings.Join(dirs, " ")
	for _, child := range children {
		line += fmt.Sprintf(" %d", child.cmd.Process.Pid)
	}
	if _, err := fmt.Fprintln(os.Stdout, line); err != nil {
		return err
	}
	select {}
}

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, maximum: 3}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: shop}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: shop}
rules:
- {apiGroups: [example.com], resources: [widgets], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects:
- {kind: ServiceAccount, name: reader, namespace: shop}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: small, namespace: shop}
spec: {size: 3}
`

func TestAPIServer(t *testing.T) {
	c := start(t, Options{})
	objs, err := Decode(strings.NewReader(widgets))
	require.NoError(t, err)
	require.NoError(t, c.Apply(t.Context(), objs...))
	require.NoError(t, c.Apply(t.Context(), objs...), "applying twice changes nothing")

	t.Run("an invalid object is refused", func(t *testing.T) {
		big := objs[len(objs)-1].DeepCopy()
		require.NoError(t, unstructured.SetNestedField(big.Object, int64(4), "spec", "size"))
		err := c.Apply(t.Context(), big)
		require.True(t, apierrors.IsInvalid(err), "%v", err)
		assert.ErrorContains(t, err, "apply Widget shop/small")
	})
	t.Run("a ServiceAccount may do what its role allows and no more", func(t *testing.T) {
		path, err := c.ServiceAccountKubeconfig(t.Context(), "shop", "reader")
		require.NoError(t, err)
		reader := clientFor(t, path)
		key := client.ObjectKey{Namespace: "shop", Name: "small"}
		require.NoError(t, reader.Get(t.Context(), key, objs[len(objs)-1].DeepCopy()))
		err = reader.Get(t.Context(), key, &corev1.Secret{})
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		assert.ErrorContains(t, err, "system:serviceaccount:shop:reader")

		_, err = c.ServiceAccountKubeconfig(t.Context(), "shop", "nobody")
		assert.True(t, apierrors.IsNotFound(err), "%v", err)
	})
	t.Run("a node keeps its status and gets no taint that no one would remove", func(t *testing.T) {
		require.NoError(t, c.CreateNode(t.Context(), fakeNode("plain")))
		var node corev1.Node
		require.NoError(t, c.client.Get(t.Context(), client.ObjectKey{Name: "plain"}, &node))
		assert.Equal(t, "4", node.Status.Allocatable.Cpu().String())
		assert.Empty(t, node.Spec.Taints)
	})
	t.Run("stop leaves nothing", func(t *testing.T) {
		var pids []int
		for _, child := range c.children {
			pids = append(pids, child.cmd.Process.Pid)
		}
		require.Len(t, pids, 2)
		require.NoError(t, c.Stop())
		for _, pid := range pids {
			assert.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
		}
		assert.NoDirExists(t, c.Dir)
		assert.NoError(t, c.Stop(), "a second call does nothing")
	})
}

func TestDeploymentRunsOnFakeNode(t *testing.T) {
	c := start(t, Options{ControllerManager: true, Scheduler: true, KWOK: true})
	node := fakeNode("fake")
	node.Annotations = map[string]string{"kwok.x-k8s.io/node": "fake"}
	require.NoError(t, c.CreateNode(t.Context(), node))

	ctx := t.Context()
	labels := map[string]string{"app": "web"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.com/web"}}},
			},
		},
	}
	require.NoError(t, c.client.Create(t.Context(), deployment))
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		var pods corev1.PodList
		require.NoError(t, c.client.List(ctx, &pods, client.InNamespace("default"), client.MatchingLabels(labels)))
		require.Len(t, pods.Items, 1)
		pod := pods.Items[0]
		assert.Equal(t, corev1.PodRunning, pod.Status.Phase)
		assert.Equal(t, "fake", pod.Spec.NodeName)
		assert.Equal(t, "default", pod.Spec.ServiceAccountName)
	}, limit, step)
}

func TestStartFailureShowsTheLogAndLeavesNothing(t *testing.T) {
	assets, temp := t.TempDir(), t.TempDir()
	write(t, assets+"/etcd", "#!/bin/sh\necho disk on fire\nexit 1\n")
	write(t, assets+"/kube-apiserver", "#!/bin/sh\n")
	t.Setenv("KUBEBUILDER_ASSETS", assets)
	t.Setenv("TMPDIR", temp)
	_, err := Start(t.Context(), Options{})
	require.ErrorContains(t, err, "start etcd")
	require.ErrorContains(t, err, "disk on fire")
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestChildrenDieWithAKilledParent(t *testing.T) {
	needs.Check(t, needs.ControlPlane, Ready(t.Context(), Options{}))
	pids, _ := killParent(t, "cluster")
	require.Len(t, pids, 2)
	for _, pid := range pids {
		require.Eventually(t, func() bool { return !running(pid) }, limit, step, "process %d outlives its parent", pid)
	}
}

// killParent kills a process after it has started what is asked for, and returns
// which processes and folders that has.
func killParent(t *testing.T, what string) (pids []int, dirs []string) {
	t.Helper()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentVariable+"="+what)
	parent.Stderr = os.Stderr
	out, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "the parent started nothing")
	for field := range strings.FieldsSeq(line) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			dirs = append(dirs, field)
			t.Cleanup(func() { assert.NoError(t, os.RemoveAll(field)) })
			continue
		}
		pids = append(pids, pid)
		require.True(t, running(pid))
		t.Cleanup(func() {
			if running(pid) { // the test has failed; leave nothing behind all the same
				assert.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
			}
		})
	}
	require.NoError(t, parent.Process.Kill())
	require.Error(t, parent.Wait())
	return pids, dirs
}

// running is false for a zombie too: an orphan stays one where no one collects it.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}

func start(t *testing.T, opts Options) *ControlPlane {
	t.Helper()
	needs.Check(t, needs.ControlPlane, Ready(t.Context(), opts))
	opts.Log = t.Output()
	c, err := Start(t.Context(), opts)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Stop()) })
	return c
}

func clientFor(t *testing.T, kubeconfig string) client.Client {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	c, err := client.New(config, client.Options{})
	require.NoError(t, err)
	return c
}

func fakeNode(name string) *corev1.Node {
	amounts := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("4"),
		corev1.ResourceMemory: resource.MustParse("8Gi"),
		corev1.ResourcePods:   resource.MustParse("10"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Capacity: amounts, Allocatable: amounts},
	}
}
