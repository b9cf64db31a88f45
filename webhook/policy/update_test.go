package policy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/config"
)

const strictGrace = twoPools + "rules: {placeholder-grace-period: Deny, placeholder-pull-command: Deny}\n"

func withGrace(d *appsv1.Deployment, seconds int64) *appsv1.Deployment {
	d.Spec.Template.Spec.TerminationGracePeriodSeconds = &seconds
	return d
}

func TestCheckUpdateDeniesWhatIsNewOrWorse(t *testing.T) {
	e := newEvaluator(t, strictGrace)
	tests := []struct {
		name        string
		before, now int64
		want        config.Action
	}{
		{"new", 0, 60, config.Deny},
		{"the same", 60, 60, config.Warn},
		{"worse", 60, 61, config.Deny},
		{"less", 60, 59, config.Warn},
		{"mended", 60, 0, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			old := e.Placeholder(withGrace(faulty(t, "cpu"), test.before), "warm")
			now := e.Placeholder(withGrace(faulty(t, "cpu"), test.now), "warm")
			assert.Equal(t, test.want, actionOf(e.CheckUpdate(now, old), "placeholder-grace-period"))
		})
	}
}

// An old violation of one rule excuses no other rule, and the faults that stay are still reported.
func TestCheckUpdateJudgesEachFaultByItself(t *testing.T) {
	e := newEvaluator(t, strictGrace)
	before := faulty(t, "cpu")
	before.Spec.Template.Spec.InitContainers[0].Command = []string{"true"}
	findings := e.CheckUpdate(e.Placeholder(faulty(t, "cpu"), "warm"), e.Placeholder(before, "warm"))
	assert.Equal(t, config.Warn, actionOf(findings, "placeholder-grace-period"))
	assert.Equal(t, config.Deny, actionOf(findings, "placeholder-pull-command"))
	assert.Equal(t, ids(e.Check(e.Placeholder(faulty(t, "cpu"), "warm"))), ids(findings))
}

func TestCheckUpdateKeepsMilderActions(t *testing.T) {
	e := newEvaluator(t, twoPools+"rules: {placeholder-grace-period: Audit}\n")
	findings := e.CheckUpdate(e.Placeholder(faulty(t, "cpu"), "warm"), e.Placeholder(withGrace(faulty(t, "cpu"), 0), "warm"))
	assert.Equal(t, config.Audit, actionOf(findings, "placeholder-grace-period"))
}

func TestWhatLeavesAlwaysPasses(t *testing.T) {
	e := newEvaluator(t, strictGrace)
	old := e.Placeholder(withGrace(faulty(t, "cpu"), 0), "warm")
	leaving := map[string]func(*appsv1.Deployment){
		"being deleted":  func(d *appsv1.Deployment) { d.DeletionTimestamp = &metav1.Time{} },
		"scaled to zero": func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32) },
	}
	for name, leave := range leaving {
		d := faulty(t, "cpu")
		leave(d)
		findings := e.CheckUpdate(e.Placeholder(d, "warm"), old)
		assert.NotEmpty(t, findings, name)
		for _, f := range findings {
			assert.NotEqual(t, config.Deny, f.Action, "%s: %v", name, f.Error)
		}
	}

	created := faulty(t, "cpu")
	created.Spec.Replicas = new(int32)
	assert.Equal(t, config.Deny, actionOf(e.Check(e.Placeholder(created, "warm")), "placeholder-grace-period"), "created with no replicas, it is denied: nothing forces anybody to do that")
}
