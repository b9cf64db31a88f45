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
		{"fixed", 60, 0, ""},
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

func TestWhatIsBeingDeletedAlwaysPasses(t *testing.T) {
	e := newEvaluator(t, strictGrace)
	d := faulty(t, "cpu")
	d.DeletionTimestamp = &metav1.Time{}
	findings := e.CheckUpdate(e.Placeholder(d, "warm"), e.Placeholder(withGrace(faulty(t, "cpu"), 0), "warm"))
	assert.NotEmpty(t, findings)
	for _, f := range findings {
		assert.NotEqual(t, config.Deny, f.Action, f.Error)
	}
}

// No way leads around a rule: neither through 0 replicas nor through a Deployment that is no placeholder yet. What was
// faulty before can be scaled and repaired all the same.
func TestUpdatesThroughZeroReplicas(t *testing.T) {
	e := newEvaluator(t, twoPools+"rules: {placeholder-grace-period: Deny, placeholder-replicas: Deny}\n")
	const (
		good, bad, worse = 0, 60, 61 // seconds of grace period
		unmarked         = -1        // of a Deployment that is broken, too
	)
	deployment := func(state, replicas int) *appsv1.Deployment {
		d := withGrace(faulty(t, "cpu"), int64(max(state, good)))
		d.Spec.Replicas = new(int32(replicas))
		if state == unmarked {
			withGrace(d, bad)
			d.Labels, d.Spec.Template.Spec.PriorityClassName = nil, ""
		}
		return d
	}
	for _, c := range []struct {
		name                         string
		was, wasReplicas, is, number int
		want                         config.Action
	}{
		{"what is right comes up", good, 0, good, 5, ""},
		{"what is right is scaled", good, 3, good, 5, ""},
		{"what is right goes to 0", good, 3, good, 0, ""},
		{"what is right breaks at 0", good, 0, bad, 0, config.Deny},
		{"what is right breaks on its way to 0", good, 3, bad, 0, config.Deny},
		{"what is broken goes to 0", bad, 3, bad, 0, config.Warn},
		{"what is broken gets worse on its way to 0", bad, 3, worse, 0, config.Deny},
		{"what is broken stays at 0", bad, 0, bad, 0, config.Warn},
		{"what is broken gets worse at 0", bad, 0, worse, 0, config.Deny},
		{"what is broken is repaired at 0", bad, 0, good, 0, ""},
		{"what is broken leaves 0", bad, 0, bad, 5, config.Deny},
		{"what is broken is repaired and leaves 0", bad, 0, good, 5, ""},
		{"what is broken is scaled up", bad, 3, bad, 4, config.Warn},
		{"what is broken is scaled down", bad, 3, bad, 2, config.Warn},
		{"what is broken is marked", unmarked, 3, bad, 3, config.Deny},
		{"what is broken is marked at 0", unmarked, 0, bad, 0, config.Deny},
		{"what is broken is marked on its way to 0", unmarked, 3, bad, 0, config.Deny},
		{"what is broken is marked as it leaves 0", unmarked, 0, bad, 5, config.Deny},
		{"what is right is marked", unmarked, 3, good, 3, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			was, is := deployment(c.was, c.wasReplicas), deployment(c.is, c.number)
			assert.Equal(t, c.was != unmarked, e.IsPlaceholder(was))
			findings := e.CheckUpdate(e.Placeholder(is, "warm"), e.Placeholder(was, "warm"))
			assert.Equal(t, c.want, actionOf(findings, "placeholder-grace-period"))
			if c.was != unmarked && c.number == 0 {
				assert.NotEqual(t, config.Deny, actionOf(findings, "placeholder-replicas"), "scaling to 0 is no fault")
			}
		})
	}
	assert.Equal(t, config.Deny, actionOf(e.Check(e.Placeholder(deployment(bad, 0), "warm")), "placeholder-grace-period"), "created with no replicas, it is denied: nothing forces anyone to do that")
}
