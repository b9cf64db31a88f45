package cpa

import (
	"maps"
	"math"
	"slices"
)

// Ladder is CPA's ladder mode: steps of a count, and the replicas from there on, sorted by the count.
type Ladder struct{ Cores, Nodes [][2]int }

// replicas are the count that the ladder gives.
func (l *Ladder) replicas(nodes int, cores float64) int {
	return max(step(l.Nodes, float64(nodes)), step(l.Cores, cores))
}

func step(steps [][2]int, have float64) int {
	if len(steps) == 0 {
		return 0
	}
	// The first step that is out of reach; below the first of all CPA takes that.
	i, _ := slices.BinarySearchFunc(steps, have, func(s [2]int, have float64) int {
		if float64(s[0]) > have {
			return 1
		}
		return -1
	})
	return steps[max(i-1, 0)][1]
}

// most is the largest count of the ladder.
func (l *Ladder) most() int {
	most := 0
	for _, step := range slices.Concat(l.Nodes, l.Cores) {
		most = max(most, step[1])
	}
	return most
}

// at is the count at so many nodes with so many cores each.
func (l *Ladder) at(nodes int, cores float64) int { return l.replicas(nodes, float64(nodes)*cores) }

// Settled is where the count stays, coming from none, with so many other nodes and one for each replica.
func (l *Ladder) Settled(others int, cores float64) int {
	count := 0
	for range len(l.Nodes) + len(l.Cores) + 1 { // no more steps to climb than there are
		next := l.at(others+count, cores)
		if next <= count {
			break
		}
		count = next
	}
	return count
}

// Runaway tells whether the ladder's own steps carry it to the top: one node calls for first placeholders, and these by their
// own nodes for forOne, its last step.
func (l *Ladder) Runaway(cores float64) (forOne, first int, runaway bool) {
	first = l.at(1, cores)
	forOne = l.Settled(1, cores)
	return forOne, first, forOne > first && forOne >= l.most()
}

// Flip is a count that never settles: beside so many other nodes it goes from Most to Then, which these call for, and back.
type Flip struct{ Others, Most, Then int }

// mostFalls bounds the work on a ladder that falls very often: one that flips is enough.
const mostFalls = 20

// Flips is how the count flips beside so many other nodes, else beside the least number of them where it does; nil: it
// settles everywhere. Only where a step calls for fewer replicas than the one before can it flip.
func (l *Ladder) Flips(others int, cores float64) *Flip {
	falls := l.falls(cores)
	if len(falls) == 0 {
		return nil
	}
	if f := l.flipsBeside(others, cores); f != nil {
		return f
	}
	var candidates []int
	for _, nodes := range falls {
		// The count before the fall makes exactly as many nodes as it takes to fall.
		candidates = append(candidates, max(nodes-l.at(nodes-1, cores), 0))
	}
	slices.Sort(candidates)
	for _, others := range slices.Compact(candidates) {
		if f := l.flipsBeside(others, cores); f != nil {
			return f
		}
	}
	return nil
}

// falls are the counts of nodes, at most mostFalls of them, at which the ladder calls for fewer replicas than at one less.
func (l *Ladder) falls(cores float64) []int {
	at := map[int]bool{}
	for _, step := range l.Nodes {
		at[step[0]] = true
	}
	for _, step := range l.Cores {
		at[int(min(math.Ceil(float64(step[0])/cores), math.MaxInt32))] = true
	}
	var falls []int
	for _, nodes := range slices.Sorted(maps.Keys(at)) {
		if nodes > 0 && l.at(nodes, cores) < l.at(nodes-1, cores) && len(falls) < mostFalls {
			falls = append(falls, nodes)
		}
	}
	return falls
}

// flipsBeside follows the count beside so many other nodes, coming from none and from the most, as CPA sets it and its
// nodes start and go.
func (l *Ladder) flipsBeside(others int, cores float64) *Flip {
	for _, count := range []int{0, l.most()} {
		seen := map[int]bool{}
		next := func(count int) int { return l.at(others+count, cores) }
		for !seen[count] { // as many at most as there are steps
			seen[count] = true
			count = next(count)
		}
		if next(count) == count {
			continue
		}
		most := count
		for at := next(count); at != count; at = next(at) {
			most = max(most, at)
		}
		return &Flip{Others: others, Most: most, Then: next(most)}
	}
	return nil
}
