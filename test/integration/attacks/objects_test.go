package attacks_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/install"
)

// tenant is the namespace of who attacks, canary what must not be in warmpool's log.
const (
	tenant = "attackers"
	canary = "canary-7f3a"
)

// almostAll of what etcd takes, 1.5 MiB.
const almostAll = 1_300_000

// hostileObjects are as many as a tenant may make, each as large as it may be or as kept; none has a mark of a pool.
func hostileObjects() []client.Object {
	var all []client.Object
	long := func(n int) string { return strings.Repeat(canary+" ", n/len(canary+" ")) }
	for i := range 192 {
		all = append(all, lookAlike(fmt.Sprint("look-alike-", i), long(almostAll)))
	}
	for i := range 300 {
		all = append(all, lookAlike(fmt.Sprint("smaller-", i), long(50_000)))
	}
	for i := range 4 { // 2 bytes as sent take 48 in memory
		d := lookAlike(fmt.Sprint("empty-terms-", i), canary)
		d.Spec.Template.Spec.Affinity = emptyTerms(300_000)
		all = append(all, d)
	}
	for i := range 32 {
		pod := lookAlike("", long(almostAll)).Spec.Template
		daemons := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: fmt.Sprint("daemons-", i)}}
		daemons.Spec.Template, daemons.Spec.Selector = pod, &metav1.LabelSelector{MatchLabels: pod.Labels}
		if i%16 == 0 {
			daemons.Spec.Template.Spec.Affinity, daemons.Spec.Template.Spec.Containers[0].Args = emptyTerms(300_000), nil
		}
		template := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"defaultImage": long(almostAll)}}}
		template.SetAPIVersion("workspace.jupyter.org/v1alpha1")
		template.SetKind("WorkspaceTemplate")
		template.SetNamespace(tenant)
		template.SetName(fmt.Sprint("template-", i))
		one := workspace(fmt.Sprint("large-", i))
		one.Spec.Containers[0].Args = []string{long(almostAll)}
		all = append(all, daemons, template, one)
	}
	return all
}

// lookAlike is a Deployment that runs a Cluster Proportional Autoscaler, as it seems.
func lookAlike(name, argument string) *appsv1.Deployment {
	labels := map[string]string{"a": "b"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "c", Image: "registry.example/c:1", Args: []string{"--target=deployment/" + canary, "--configmap=" + canary, argument},
			}}}},
		},
	}
}

func emptyTerms(n int) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: make([]corev1.NodeSelectorTerm, n),
	}}}
}

// A tenant fills its namespace with objects as large as etcd takes: the replica that runs, and those that start later, with a
// stream of what there is or with lists, stay within the memory limit, answer, and audit.
func TestHostileObjectsStayWithinTheMemoryLimit(t *testing.T) {
	c := newCluster(t)
	require.NoError(t, c.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant}}))
	stop := c.create(t)
	var tenants errgroup.Group
	tenants.SetLimit(4)
	objects := hostileObjects()
	for _, object := range objects {
		tenants.Go(func() error {
			if err := c.admin.Create(t.Context(), object); err != nil {
				return fmt.Errorf("%T %s: %.200s", object, object.GetName(), err.Error())
			}
			return nil
		})
	}
	require.NoError(t, tenants.Wait(), "else nothing is attacked")
	c.withstands(t, "592 Deployments, DaemonSets, templates and pods, most of 1.3 MB, come while it runs", stop)
	for _, start := range []struct{ streams, attack string }{
		{"true", "They are there when it starts, and the API server streams"},
		{"false", "They are there when it starts, and the API server lists"},
	} {
		require.NoError(t, c.warmpool.Stop())
		t.Setenv("KUBE_FEATURE_WatchListClient", start.streams)
		c.start()
		c.withstands(t, start.attack, c.create(t))
	}
}

// withstands waits for an audit, while pods are created, and looks at what has become of the replica.
func (c *cluster) withstands(t *testing.T, when string, stop func() (int, int, int)) {
	t.Helper()
	require.Eventually(t, func() bool {
		large, _, err := install.Metric(t.Context(), c.warmpool.MetricsURL, "warmpool_objects_too_large", `kind="Deployment"`)
		audits, _, failed := install.Metric(t.Context(), c.warmpool.MetricsURL, "warmpool_audits_total", `result="success"`)
		return err == nil && failed == nil && large == 196 && audits > 0
	}, 2*time.Minute, time.Second, when)
	c.withstood(t, when, stop)
	log, err := os.ReadFile(c.warmpool.Log)
	require.NoError(t, err)
	assert.NotContains(t, string(log), canary, when)
}
