package cluster_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"warmpool.sh/webhook/cluster"
)

type nodePools = map[string]*cluster.NodePool

func known(names ...string) cluster.Facts[cluster.NodePool] {
	all := nodePools{}
	for _, name := range names {
		all[name] = &cluster.NodePool{Name: name}
	}
	return cluster.Known(all)
}

func keysOf(facts cluster.Facts[cluster.NodePool]) []string {
	var keys []string
	for key := range facts.All() {
		keys = append(keys, key)
	}
	return keys
}

func TestWithLeavesTheOldFactsAsTheyWere(t *testing.T) {
	before := known("a", "b")
	a := before.Get("a")
	replaced := &cluster.NodePool{Name: "a, replaced"}
	after := before.With(nodePools{"a": replaced, "b": nil, "c": {}, "d": nil})
	assert.Equal(t, []string{"a", "b"}, keysOf(before))
	assert.Equal(t, 2, before.Len())
	assert.Same(t, a, before.Get("a"))
	assert.Equal(t, []string{"a", "c"}, keysOf(after))
	assert.Equal(t, 2, after.Len())
	assert.Same(t, replaced, after.Get("a"))
	assert.Nil(t, after.Get("b"))

	other := before.With(nodePools{"e": {}})
	assert.Equal(t, []string{"a", "b", "e"}, keysOf(other), "two may be made of the same facts")
	assert.Nil(t, after.Get("e"))
}

func TestKeysThatBeginLikeOthersStayApartAndSorted(t *testing.T) {
	names := []string{"", "n", "n-1", "n-10", "n-100", "n-2", "n/1", "team-a/w", "team-b/w"}
	facts := known()
	for _, name := range slices.Backward(names) {
		facts = facts.With(nodePools{name: {Name: name}})
	}
	assert.Equal(t, names, keysOf(facts))
	for _, name := range names {
		assert.Equal(t, name, facts.Get(name).Name)
	}
	assert.Nil(t, facts.Get("n-"))
	assert.Equal(t, slices.Delete(slices.Clone(names), 2, 3), keysOf(facts.With(nodePools{"n-1": nil})))
}

func TestChangedSince(t *testing.T) {
	first := known("a")
	second := first.With(nodePools{"c": {}, "a": nil, "b": {}, "absent": nil})
	third := second.With(nodePools{"d": {}})

	for _, facts := range []cluster.Facts[cluster.NodePool]{first, second, third} {
		keys, ok := facts.ChangedSince(facts)
		assert.True(t, ok)
		assert.Empty(t, keys)
	}
	keys, ok := second.ChangedSince(first)
	assert.True(t, ok)
	assert.Equal(t, []string{"a", "absent", "b", "c"}, keys)
	keys, ok = third.ChangedSince(second)
	assert.True(t, ok)
	assert.Equal(t, []string{"d"}, keys)

	_, ok = third.ChangedSince(first)
	assert.False(t, ok, "more than one step")
	_, ok = first.ChangedSince(second)
	assert.False(t, ok, "the wrong way round")
	_, ok = second.ChangedSince(first.With(nil))
	assert.False(t, ok, "siblings")
	_, ok = known("a").ChangedSince(first)
	assert.False(t, ok, "another reading of the same")
}

func TestFactsThatBecomeKnownMayDifferInEverything(t *testing.T) {
	for _, before := range []cluster.Facts[cluster.NodePool]{{}, cluster.Unknown[cluster.NodePool]("not synced yet")} {
		after := before.With(nodePools{"a": {}, "b": nil})
		assert.True(t, after.Known())
		assert.Empty(t, after.Reason())
		assert.Equal(t, []string{"a"}, keysOf(after))
		assert.False(t, before.Known())
		_, ok := after.ChangedSince(before)
		assert.False(t, ok)
	}
	_, ok := cluster.Unknown[cluster.NodePool]("gone").ChangedSince(known("a"))
	assert.False(t, ok, "nor do facts that become unknown")
	var zero cluster.Facts[cluster.NodePool]
	keys, ok := zero.ChangedSince(zero)
	assert.True(t, ok)
	assert.Empty(t, keys)
}

func TestMalformedObjectsStayWithTheFacts(t *testing.T) {
	reasons := map[string]string{"z": "spec: got a number", "b": "spec: got a list"}
	first := known("a").WithMalformed(reasons)
	assert.Equal(t, []string{"b", "z"}, first.AllMalformed())
	assert.Empty(t, known("a").AllMalformed())

	second := first.With(nodePools{"c": {}})
	assert.Equal(t, []string{"b", "z"}, second.AllMalformed())
	healed := second.With(nodePools{"z": {}}).WithMalformed(map[string]string{"b": "spec: got a list"})
	assert.Equal(t, []string{"b"}, healed.AllMalformed())
	assert.Equal(t, reasons["z"], second.Malformed("z"), "the old facts stay as they are")
	keys, ok := healed.ChangedSince(second)
	assert.True(t, ok, "the reasons make no other version")
	assert.Equal(t, []string{"z"}, keys)
}

func TestFactsSurviveManyChanges(t *testing.T) {
	want := nodePools{}
	facts := known()
	for i := range 2000 {
		key := string(rune('a' + i*7%26))
		change := &cluster.NodePool{Name: key}
		if i%3 == 0 {
			change = nil
			delete(want, key)
		} else {
			want[key] = change
		}
		next := facts.With(nodePools{key: change})
		keys, ok := next.ChangedSince(facts)
		assert.True(t, ok)
		assert.Equal(t, []string{key}, keys)
		facts = next
	}
	assert.Equal(t, want, maps.Collect(facts.All()))
	assert.Equal(t, len(want), facts.Len())
}

func TestFactsByPrefix(t *testing.T) {
	facts := known("team/a", "team/b", "team-b/a", "other/a")
	var keys []string
	for key := range facts.Prefix("team/") {
		keys = append(keys, key)
	}
	assert.Equal(t, []string{"team/a", "team/b"}, keys)
	for key := range facts.Prefix("absent/") {
		t.Fatal(key)
	}
	for range (cluster.Facts[cluster.NodePool]{}).Prefix("team/") {
		t.Fatal("facts that are not known yield an object")
	}
}
