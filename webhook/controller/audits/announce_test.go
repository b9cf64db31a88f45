package audits

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/audit"
	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/policy"
)

// event is what was reported; name is empty for one without a name of its own.
type event struct {
	name         string
	about        corev1.ObjectReference
	reason, note string
}

type heard struct{ events []event }

func (h *heard) Eventf(regarding, _ runtime.Object, _, reason, _, format string, args ...any) {
	h.Once("", regarding, "", reason, "", fmt.Sprintf(format, args...))
}

func (h *heard) Once(name string, regarding runtime.Object, _, reason, _, note string) {
	if about, ok := regarding.(*corev1.ObjectReference); ok {
		h.events = append(h.events, event{name, *about, reason, note})
	}
}

func (h *heard) take() []event {
	events := h.events
	h.events = nil
	return events
}

func finding(severity policy.Severity, kind, name, message string) audit.Finding {
	f := audit.Finding{Rule: "placeholder-size", Severity: severity, Kind: kind, Name: name, Field: "spec", Message: message, Fix: "Do it.", Pool: "cpu"}
	if kind == "Deployment" {
		f.Namespace = "warm"
	}
	return f
}

func reportOf(findings ...audit.Finding) *audit.Report { return &audit.Report{Findings: findings} }

var (
	configuration = client.ObjectKey{Namespace: "warmpool-system", Name: "warmpool-config"}
	warm          = &cluster.Snapshot{Deployments: cluster.Known(map[string]*appsv1.Deployment{
		"warm/a": {ObjectMeta: metav1.ObjectMeta{Namespace: "warm", Name: "a", UID: "1"}},
	})}
)

func TestNewErrorsAreToldOnce(t *testing.T) {
	h := &heard{}
	one := announcer{events: h, configuration: configuration}
	broken := finding(policy.SeverityError, "Deployment", "a", "3 of 5 are too large.")
	one.announce(reportOf(broken, finding(policy.SeverityWarning, "Deployment", "a", "no error")), warm)
	first := h.take()
	require.Len(t, first, 1)
	assert.NotEmpty(t, first[0].name)
	assert.Equal(t, corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "warm", Name: "a", UID: "1"}, first[0].about)
	assert.Equal(t, "PlaceholderSize", first[0].reason)
	assert.Equal(t, "3 of 5 are too large. Do it.", first[0].note)

	broken.Message = "4 of 5 are too large."
	one.announce(reportOf(broken), warm)
	assert.Empty(t, h.take(), "the numbers are others, the error is the same")
	one.announce(reportOf(broken, broken), warm)
	assert.Len(t, h.take(), 1, "a second one of the same field")

	one.announce(reportOf(), warm)
	one.announce(reportOf(broken), warm)
	back := h.take()
	require.Len(t, back, 1, "fixed, and broken again")
	assert.Empty(t, back[0].name, "the Event of the first time may still have the name")

	next := announcer{events: h, configuration: configuration}
	next.announce(reportOf(broken), warm)
	assert.Equal(t, first[0].name, h.take()[0].name, "another leader asks for the same Event, which is there")

	anew := *warm
	anew.Deployments = warm.Deployments.With(map[string]*appsv1.Deployment{"warm/a": {ObjectMeta: metav1.ObjectMeta{UID: "2"}}})
	one.announce(reportOf(broken), &anew)
	assert.Len(t, h.take(), 1, "another object of the same name")
}

func TestManyErrorsAreToldBitByBit(t *testing.T) {
	h := &heard{}
	one := announcer{events: h, configuration: configuration}
	var many []audit.Finding
	for i := range most + 10 {
		many = append(many, finding(policy.SeverityError, "Pod", fmt.Sprint("pod-", i), "wrong"))
	}
	made, left := one.announce(reportOf(many...), warm)
	assert.Equal(t, []int{most, 10}, []int{made, left})
	made, left = one.announce(reportOf(many...), warm)
	assert.Equal(t, []int{10, 0}, []int{made, left})
	names := map[string]bool{}
	for _, e := range h.take() {
		names[e.name] = true
	}
	assert.Len(t, names, most+10)
}

// An Event has to be about something that kubectl describe finds.
func TestReference(t *testing.T) {
	facts := &cluster.Snapshot{NodePools: cluster.Known(map[string]*cluster.NodePool{"a": {Name: "a", APIVersion: "karpenter.sh/v1", UID: "2"}})}
	for _, test := range []struct {
		kind string
		want corev1.ObjectReference
	}{
		{"Node", corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "a", UID: types.UID("a")}},
		{"NodePool", corev1.ObjectReference{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: "a", UID: "2"}},
		{"PriorityClass", corev1.ObjectReference{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass", Name: "a"}},
		{"WarmPool", corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "warmpool-system", Name: "warmpool-config"}},
	} {
		f := finding(policy.SeverityError, test.kind, "a", "wrong")
		assert.Equal(t, &test.want, reference(&f, facts, configuration))
	}
}

func TestGaugeForgetsWhatIsFixed(t *testing.T) {
	t.Cleanup(findings.Reset)
	var g gauge
	broken := finding(policy.SeverityError, "Deployment", "a", "wrong")
	g.show(reportOf(broken, broken, finding(policy.SeverityWarning, "Deployment", "a", "wrong")))
	assert.Equal(t, 2, testutil.CollectAndCount(findings))
	assert.InDelta(t, 2, testutil.ToFloat64(findings.WithLabelValues("placeholder-size", "error", "cpu")), 0)
	g.show(reportOf(broken))
	assert.Equal(t, 1, testutil.CollectAndCount(findings))
	g.show(reportOf())
	assert.Zero(t, testutil.CollectAndCount(findings))
}
