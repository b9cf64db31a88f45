package placement

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

var (
	testOperators = []corev1.NodeSelectorOperator{
		corev1.NodeSelectorOpIn, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists,
		corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt, opGte, opLte,
	}
	testKeys = []string{
		"beta.kubernetes.io/arch", corev1.LabelArchStable, corev1.LabelInstanceType, corev1.LabelInstanceTypeStable,
		corev1.LabelFailureDomainBetaZone, corev1.LabelTopologyZone, "team",
	}
	testValues = []string{"a", "b", "c", "3", "5", "7", "0", "007", "5x", ""}
)

func generated(r *rand.Rand) []corev1.NodeSelectorRequirement {
	var all []corev1.NodeSelectorRequirement
	for range r.IntN(5) {
		one := corev1.NodeSelectorRequirement{Key: testKeys[r.IntN(len(testKeys))], Operator: testOperators[r.IntN(len(testOperators))]}
		switch one.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
			for range 1 + r.IntN(3) {
				one.Values = append(one.Values, testValues[r.IntN(len(testValues))])
			}
		case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		default:
			one.Values = []string{strconv.Itoa(r.IntN(10) + 1)}
		}
		all = append(all, one)
	}
	return all
}

// TestKarpenterReadsTheSame holds the reading of requirements to Karpenter's own, without a difference. Where placement excludes
// more than Karpenter does, no node that the NodePool can have suits the scheduler.
func TestKarpenterReadsTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 0))
	agreed, excluded, stricter := 0, 0, 0
	for range 150_000 {
		own, asked := generated(r), generated(r)
		karpenter := scheduling.NewNodeSelectorRequirements(own...).Intersects(scheduling.NewNodeSelectorRequirements(asked...)) == nil
		same, suits := true, true
		offer := offer{byKey: map[string]values{}}
		for _, l := range labels(own, nil) {
			offer.byKey[l.key] = l.values
		}
		for _, l := range labels(asked, nil) {
			have, mentioned := offer.byKey[l.key]
			same = same && (!mentioned || have.karpenterSuits(&l.values))
			suits = suits && !l.never && !offer.excludes(&l)
		}
		require.Equal(t, karpenter, same, "%v and %v", own, asked)
		require.False(t, suits && !karpenter, "%v and %v", own, asked)
		agreed++
		if !karpenter {
			excluded++
		}
		if karpenter && !suits {
			stricter++
			if stricter < 2000 {
				assertNone(t, own, asked)
			}
		}
	}
	assert.GreaterOrEqual(t, agreed, 100_000)
	assert.Greater(t, excluded, 10_000)
	assert.Greater(t, stricter, 1000)
}

// assertNone tries all values of each label: no node is as NodePool and pod want.
func assertNone(t *testing.T, own, asked []corev1.NodeSelectorRequirement) {
	t.Helper()
	possible := true
	byKey := map[string][]corev1.NodeSelectorRequirement{}
	for _, requirement := range append(append([]corev1.NodeSelectorRequirement{}, own...), asked...) {
		requirement.Key = NormalKey(requirement.Key)
		switch requirement.Operator { // that the scheduler has not
		case opGte:
			requirement.Operator, requirement.Values = corev1.NodeSelectorOpGt, []string{plus(t, requirement.Values[0], -1)}
		case opLte:
			requirement.Operator, requirement.Values = corev1.NodeSelectorOpLt, []string{plus(t, requirement.Values[0], 1)}
		default: // one that it has
		}
		byKey[requirement.Key] = append(byKey[requirement.Key], requirement)
	}
	for key, all := range byKey {
		term := corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: all}}}
		selector, err := nodeaffinity.NewNodeSelector(&term)
		require.NoError(t, err)
		some := selector.Match(&corev1.Node{})
		values := append([]string{"other"}, testValues...)
		for n := range 20 {
			values = append(values, strconv.Itoa(n))
		}
		for _, value := range values {
			some = some || selector.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{key: value}}})
		}
		possible = possible && some
	}
	assert.False(t, possible, "%v and %v", own, asked)
}

func plus(t *testing.T, number string, more int) string {
	t.Helper()
	n, err := strconv.Atoi(number)
	require.NoError(t, err)
	return strconv.Itoa(n + more)
}

// TestAliases: what Karpenter's core reads as another label does so here.
func TestAliases(t *testing.T) {
	for _, key := range testKeys {
		assert.Equal(t, scheduling.NewRequirement(key, corev1.NodeSelectorOpExists).Key, NormalKey(key))
	}
}

// TestHostileRequirements: the work on a pod does not explode.
func TestHostileRequirements(t *testing.T) {
	var many []corev1.NodeSelectorRequirement
	for i := range 30_000 {
		many = append(many, corev1.NodeSelectorRequirement{Key: "team", Operator: corev1.NodeSelectorOpNotIn, Values: []string{strconv.Itoa(i)}})
	}
	v := anything().read(many)
	assert.Len(t, v.listed, 30_000)
	assert.Len(t, labels(many, nil), 1)
	huge := in("team")
	huge.Values = make([]string, maxValues+1)
	crowded := anything().read([]corev1.NodeSelectorRequirement{huge})
	assert.Equal(t, -1, v.common(&crowded), "nothing is concluded")
	for _, bad := range [][]string{nil, {"x"}, {"1", "2"}, {"99999999999999999999"}} {
		assert.True(t, anything().read([]corev1.NodeSelectorRequirement{{Operator: corev1.NodeSelectorOpGt, Values: bad}}).never, bad)
	}
}
