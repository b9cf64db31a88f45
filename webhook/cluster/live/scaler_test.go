package live

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/cluster"
)

// Audits and the reading of a live cluster recognize the same CPAs: for each of them rights are read. Others' are not followed.
func TestScalers(t *testing.T) {
	in := func(namespace, name string, c corev1.Container) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "other", Image: "other:1"}, c}
		return d
	}
	deployment := func(name string, c corev1.Container) *appsv1.Deployment { return in("warm", name, c) }
	const image = "registry.example/cpa/cluster-proportional-autoscaler:v1.10.3"
	deployments := map[string]*appsv1.Deployment{}
	for _, d := range []*appsv1.Deployment{
		deployment("shell", corev1.Container{Image: image, Command: []string{"sh", "-c", "exec /cluster-proportional-autoscaler --configmap=a --target=deployment/x"}}),
		deployment("flags", corev1.Container{Image: "mirror/cpa:1", Args: []string{"--configmap", "ratios", "--target=deployment/x", "--namespace=$(ELSEWHERE)"}}),
		deployment("elsewhere", corev1.Container{Image: image, Args: []string{"--configmap=ratios", "--namespace=team"}}),
		in("team", "names-a-placeholder", corev1.Container{Args: []string{"--configmap=mine", "--target=deployments.apps/X"}}),
		in("team", "foreign", corev1.Container{Args: []string{"--configmap=a/b", "--target=x"}}),
		in("team", "x", corev1.Container{}),
		deployment("none", corev1.Container{Image: "nginx", Args: []string{"--configmap=ratios"}}),
	} {
		deployments[d.Namespace+"/"+d.Name] = d
	}
	scope := Scope{Placeholders: "warm", IsPlaceholder: func(d *appsv1.Deployment) bool { return d.Name == "x" }}
	scalers := scalersOf(cluster.Known(deployments), scope)
	assert.Equal(t, []scaler{
		{"team", client.ObjectKey{Namespace: "team", Name: "mine"}},
		{"warm", client.ObjectKey{Namespace: "team", Name: "ratios"}},
		{"warm", client.ObjectKey{Namespace: "warm", Name: "ratios"}},
		{"warm", client.ObjectKey{Namespace: "warm"}},
	}, scalers)
	assert.Equal(t, []client.ObjectKey{
		{Namespace: "team", Name: "ratios"}, {Namespace: "warm", Name: "ratios"}, {Namespace: "team", Name: "mine"},
	}, configMapsOf(scalers, "warm"), "what others name comes last")
}

// What is in a namespace that may not be asked is unknown there and nowhere else.
func TestNamespacesOfAQuery(t *testing.T) {
	var many []string
	for i := range maxNamespaces + 1 {
		many = append(many, fmt.Sprint("team-", i))
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", nil)
	for name, c := range map[string]struct {
		namespaces []string
		may        map[string]bool
		unread     int
		reason     string
	}{
		"all":              {may: map[string]bool{"": true}},
		"not all":          {reason: "this user may not list events"},
		"none":             {namespaces: []string{}},
		"one":              {namespaces: []string{"warm"}, may: map[string]bool{"warm": true}},
		"not the one":      {namespaces: []string{"warm"}, reason: "this user may not list events in namespace warm"},
		"one of two":       {namespaces: []string{"team", "warm"}, may: map[string]bool{"warm": true}, unread: 1},
		"many":             {namespaces: many, may: map[string]bool{"": true}},
		"many, the own":    {namespaces: append(many, "warm"), may: map[string]bool{"warm": true}, unread: len(many)},
		"many, not at all": {namespaces: many, reason: "this user may not list events in namespace warm"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reading{}
			unread, reason := r.eachNamespace(query{namespaces: c.namespaces, first: "warm"}, "events", func(namespace string) error {
				if c.may[namespace] {
					return nil
				}
				return forbidden
			})
			assert.Len(t, unread, c.unread)
			assert.Equal(t, c.reason, reason)
			assert.NoError(t, r.Failed())
		})
	}
}

func TestNamesThatAreNotAskedFor(t *testing.T) {
	for name, asked := range map[string]bool{"ratios": true, "": false, "a/b": false, "..": false, "a%2fb": false} {
		assert.Equal(t, asked, notAsked(0, client.ObjectKey{Namespace: "warm", Name: name}) == "", name)
		if name != "" { // which is no namespace
			assert.Equal(t, asked, notAsked(0, client.ObjectKey{Namespace: name, Name: "ratios"}) == "", name)
		}
	}
	assert.Empty(t, notAsked(maxGets-1, client.ObjectKey{Name: "x"}))
	assert.Equal(t, "more than 100 are named", notAsked(maxGets, client.ObjectKey{Name: "x"}))
}
