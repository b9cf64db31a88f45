package policy

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// ladderRunaway follows a ladder from one other node on: its own steps must not carry it to the top.
func (s *autoscaler) ladderRunaway(others int, cores float64) []Finding {
	l := s.params.Ladder
	if len(l.Cores) > 0 && cores == 0 {
		return []Finding{notVerified(s.params.path, "coresToReplicas: the cores of the pool's nodes are not known").
			about(s.params.object.Kind, s.params.object.Namespace, s.params.object.Name, s.poolName())}
	}
	if flip := l.flipsBeside(others, cores); flip != nil {
		return []Finding{s.invalid(flip.String()).
			withFix("Let no step call for fewer replicas than the step before: a larger cluster needs no fewer warm nodes.")}
	}
	first, forOne := l.replicas(1, cores), l.settled(1, cores)
	if forOne <= first || forOne < l.most() {
		return nil
	}
	return []Finding{s.invalid(fmt.Sprintf("runaway up to the last step: one node calls for %d placeholders, and their nodes for more, up to %d; beside %s the count settles at %d",
		first, forOne, otherNodes(others), l.settled(others, cores))).withFix("Spread the steps: each should need more nodes than the replicas of the step before.")}
}

// settled is where the count of a ladder stays, coming from none, with so many other nodes and one for each replica.
func (l *ladder) settled(others int, cores float64) int {
	count := 0
	for range len(l.Nodes) + len(l.Cores) + 1 { // no more steps to climb than there are
		nodes := others + count
		next := l.replicas(nodes, float64(nodes)*cores)
		if next <= count {
			break
		}
		count = next
	}
	return count
}

// most is the largest count of a ladder.
func (l *ladder) most() int {
	most := 0
	for _, steps := range [][][2]int{l.Nodes, l.Cores} {
		for _, step := range steps {
			most = max(most, step[1])
		}
	}
	return most
}

// flip is a count that never settles: beside so many other nodes it goes from the most to what these call for, and back.
type flip struct{ others, most, then int }

func (f *flip) String() string {
	return fmt.Sprintf("the count never settles: beside %s, %d placeholders make %d nodes, at which the ladder calls for %d, and from there it comes back to %d",
		otherNodes(f.others), f.most, f.others+f.most, f.then, f.most)
}

// mostFalls bounds the work on a ladder that falls very often: one that flips is enough.
const mostFalls = 20

// flipsBeside is how the count flips beside so many other nodes, else beside the least number of them where it does; nil:
// it settles everywhere. Only where a step calls for fewer replicas than the one before can it flip.
func (l *ladder) flipsBeside(others int, cores float64) *flip {
	falls := l.falls(cores)
	if len(falls) == 0 {
		return nil
	}
	if f := l.flips(others, cores); f != nil {
		return f
	}
	var candidates []int
	for _, nodes := range falls {
		// The count before the fall makes exactly as many nodes as it takes to fall.
		before := l.replicas(nodes-1, float64(nodes-1)*cores)
		candidates = append(candidates, max(nodes-before, 0))
	}
	slices.Sort(candidates)
	for _, others := range slices.Compact(candidates) {
		if f := l.flips(others, cores); f != nil {
			return f
		}
	}
	return nil
}

// falls are the counts of nodes, at most mostFalls of them, at which the ladder calls for fewer replicas than at one less.
func (l *ladder) falls(cores float64) []int {
	at := map[int]bool{}
	for _, step := range l.Nodes {
		at[step[0]] = true
	}
	for _, step := range l.Cores {
		at[int(min(math.Ceil(float64(step[0])/cores), math.MaxInt32))] = true
	}
	var falls []int
	for _, nodes := range slices.Sorted(maps.Keys(at)) {
		if nodes > 0 && l.replicas(nodes, float64(nodes)*cores) < l.replicas(nodes-1, float64(nodes-1)*cores) && len(falls) < mostFalls {
			falls = append(falls, nodes)
		}
	}
	return falls
}

// flips follows the count beside so many other nodes, coming from none and from the most, as CPA sets it and its nodes
// start and go.
func (l *ladder) flips(others int, cores float64) *flip {
	for _, count := range []int{0, l.most()} {
		seen := map[int]bool{}
		next := func(count int) int { nodes := others + count; return l.replicas(nodes, float64(nodes)*cores) }
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
		return &flip{others: others, most: most, then: next(most)}
	}
	return nil
}
