package apiserver_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var dryRun = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}

// user is a client that hears what the API server warns of.
type user struct {
	kubernetes.Interface

	mu    sync.Mutex
	heard []string
}

func newUser(t *testing.T) *user {
	t.Helper()
	return newUserOf(t, cp.Config)
}

func newUserOf(t *testing.T, cluster *rest.Config) *user {
	t.Helper()
	u := &user{}
	c := rest.CopyConfig(cluster)
	c.WarningHandlerWithContext = u
	clients, err := kubernetes.NewForConfig(c)
	require.NoError(t, err)
	u.Interface = clients
	return u
}

// HandleWarningHeaderWithContext keeps a warning, unless it is the API server's own, about a field or Pod Security.
func (u *user) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !strings.HasPrefix(text, "spec.") && !strings.HasPrefix(text, "would violate PodSecurity") {
		u.heard = append(u.heard, text)
	}
}

// warnings are those since the last call. Each must be fit for a terminal.
func (u *user) warnings(t *testing.T) []string {
	t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	heard := u.heard
	u.heard = nil
	for _, text := range heard {
		assert.LessOrEqual(t, utf8.RuneCountInString(text), 120, text)
	}
	return heard
}

// spare are namespaces that no test has used yet.
var spare []string

// namespace gives a namespace that is the test's own. They are made in batches, because each must be known to warmpool.
func (u *user) namespace(t *testing.T) string {
	t.Helper()
	if len(spare) == 0 {
		for range 50 {
			ns, err := u.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
			require.NoError(t, err)
			spare = append(spare, ns.Name)
		}
		asker := newUser(t)
		eventually(t, "warmpool knows the namespaces", func() bool {
			_, err := asker.AppsV1().Deployments(spare[len(spare)-1]).Create(t.Context(), complete(t), dryRun)
			return len(asker.warnings(t)) == 0 && err == nil
		})
	}
	name := spare[0]
	spare = spare[1:]
	return name
}

// outcome is what became of an object.
type outcome struct {
	// got is the stored object; want starts as what the API server makes of it without warmpool.
	got, want client.Object
	// spec is the pod's in want, or the pod template's.
	spec     *corev1.PodSpec
	err      error
	warnings []string
}

// create creates a Pod or a Deployment, in the way of a controller: without metadata.namespace. Where warmpool is not
// asked is known: in kube-system.
func (u *user) create(t *testing.T, namespace string, object client.Object) *outcome {
	t.Helper()
	o := &outcome{}
	var err error
	switch object := object.(type) {
	case *corev1.Pod:
		var got, want *corev1.Pod
		want, err = u.CoreV1().Pods("kube-system").Create(t.Context(), object, dryRun)
		require.NoError(t, err, "the API server itself refuses the object of this test")
		u.warnings(t)
		got, o.err = u.CoreV1().Pods(namespace).Create(t.Context(), object, metav1.CreateOptions{})
		o.got, o.want, o.spec = got, want, &want.Spec
	case *appsv1.Deployment:
		var got, want *appsv1.Deployment
		want, err = u.AppsV1().Deployments("kube-system").Create(t.Context(), object, dryRun)
		require.NoError(t, err, "the API server itself refuses the object of this test")
		u.warnings(t)
		got, o.err = u.AppsV1().Deployments(namespace).Create(t.Context(), object, metav1.CreateOptions{})
		o.got, o.want, o.spec = got, want, &want.Spec.Template.Spec
	default:
		require.Fail(t, "neither Pod nor Deployment")
	}
	o.warnings = u.warnings(t)
	return o
}

// same checks that the object was admitted and is what is wanted, in all that it has.
func (o *outcome) same(t *testing.T) {
	t.Helper()
	require.NoError(t, o.err)
	sameObject(t, o.want, o.got)
}

func sameObject(t *testing.T, want, got client.Object) {
	t.Helper()
	assert.JSONEq(t, asJSON(t, want), asJSON(t, got))
}

// cleanup is the context of what is done after a test, when its own has ended.
var cleanup = context.Background()

// asJSON is the object's JSON without what differs between any two objects.
func asJSON(t *testing.T, object client.Object) string {
	t.Helper()
	object, ok := object.DeepCopyObject().(client.Object)
	require.True(t, ok)
	object.SetNamespace("")
	object.SetUID("")
	object.SetResourceVersion("")
	object.SetCreationTimestamp(metav1.Time{})
	object.SetManagedFields(nil)
	if object.GetGenerateName() != "" {
		object.SetName("")
	}
	if pod, ok := object.(*corev1.Pod); ok {
		for i := range pod.Status.Conditions {
			pod.Status.Conditions[i].LastTransitionTime = metav1.Time{}
		}
	}
	text, err := json.Marshal(object)
	require.NoError(t, err)
	return string(text)
}

// cause is what a denial says about one field.
type cause struct{ field, message string }

// denied checks that warmpool refused a request with exactly these causes; of messages a part is enough.
func denied(t *testing.T, err error, causes ...cause) {
	t.Helper()
	require.Error(t, err)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	var status apierrors.APIStatus
	require.ErrorAs(t, err, &status)
	answer := status.Status()
	assert.EqualValues(t, http.StatusUnprocessableEntity, answer.Code)
	assert.Equal(t, metav1.StatusReasonInvalid, answer.Reason)
	assert.Contains(t, answer.Message, `admission webhook "placeholders.warmpool.sh" denied the request`)
	require.NotNil(t, answer.Details)
	assert.Equal(t, "Deployment", answer.Details.Kind)
	assert.Equal(t, "apps", answer.Details.Group)
	require.Len(t, answer.Details.Causes, len(causes), "%v", answer.Message)
	for i, want := range causes {
		got := answer.Details.Causes[i]
		assert.Equal(t, want.field, got.Field)
		assert.Contains(t, got.Message, want.message)
		assert.Contains(t, got.Message, "(rule ")
		assert.NotEmpty(t, got.Type)
	}
}

// warned checks that there are exactly these warnings. Each is given by its beginning and, after "…", a later part.
func warned(t *testing.T, warnings []string, wanted ...string) {
	t.Helper()
	require.Len(t, warnings, len(wanted), "%q", warnings)
	for i, want := range wanted {
		beginning, part, _ := strings.Cut(want, "…")
		assert.True(t, strings.HasPrefix(warnings[i], beginning), "%q does not begin with %q", warnings[i], beginning)
		assert.Contains(t, warnings[i], part)
	}
}
