package imagesync

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"

	"warmpool.sh/webhook/prepull"
)

// FuzzSequences lets random edits, reverts, pauses, changes of the leader and times follow one another. However they do:
// there are no more rollouts than edits, but for the answers to reverts; these are few; and all ends at the last images.
func FuzzSequences(f *testing.F) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		moves := make([]byte, 60)
		for i := range moves {
			moves[i] = byte(r.UintN(256))
		}
		f.Add(moves)
	}
	f.Fuzz(func(t *testing.T, moves []byte) {
		r := newRig(t)
		r.look()
		edits := 0
		for _, move := range moves[:min(len(moves), 200)] {
			edits += r.move(move)
			r.check()
		}
		r.change(func(d *appsv1.Deployment) { d.Spec.Paused = false })
		r.pass(time.Hour)
		var images []string
		for _, name := range []string{"a", "b"} {
			if image := r.templates["shared/"+name].DefaultImage; len(images) == 0 || image != images[0] {
				images = append(images, image)
			}
		}
		assert.Equal(t, images, r.pulled(), "the last images")
		assert.Equal(t, "r/mine", r.server.Spec.Template.Spec.InitContainers[0].Image)
		assert.Zero(t, r.wake, "nothing is waited for")
		assert.True(t, goalOf(r.evaluator(), r.server).recorded())
		assert.LessOrEqual(t, r.changes(), 1+edits)
		r.check()
	})
}

// move does one thing, and gives how many edits of a template that was.
func (r *rig) move(move byte) int {
	argument := int(move / 8)
	switch move % 8 {
	case 0, 1:
		name, image := []string{"a", "b"}[move%8], fmt.Sprintf("r/a:%d", argument%4)
		if r.templates["shared/"+name].DefaultImage == image {
			return 0
		}
		r.edit(name, image)
		return 1
	case 2:
		r.pull(fmt.Sprintf("r/a:%d", argument%4))
	case 3:
		r.change(func(d *appsv1.Deployment) { d.Spec.Paused = argument%2 == 0 })
	case 4:
		r.change(func(d *appsv1.Deployment) { delete(d.Annotations, prepull.SyncedAt) })
	default:
		times := []time.Duration{100 * time.Millisecond, time.Second, 3 * time.Second, burst, 40 * time.Second, 4 * time.Minute}
		r.pass(times[argument%len(times)])
	}
	return 0
}

// changes are the rollouts for another reason than a revert.
func (r *rig) changes() int {
	n := 0
	for _, w := range r.writes {
		if w.rollout && !w.answer {
			n++
		}
	}
	return n
}

// check looks at the times of the writes.
func (r *rig) check() {
	var last time.Time
	var answers []time.Time
	for _, w := range r.writes {
		if !w.rollout {
			continue
		}
		if w.answer {
			answers = append(answers, w.at)
		} else if !last.IsZero() {
			require.GreaterOrEqual(r.t, w.at.Sub(last), settle, "a change follows a write too closely")
		}
		last = w.at
	}
	for i := answers[:]; len(i) > 2; i = i[1:] {
		require.GreaterOrEqual(r.t, i[2].Sub(i[0]), backOff, "too many answers")
	}
}
