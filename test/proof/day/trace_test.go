package day_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"warmpool.sh/test/harness/simulation"
	profile "warmpool.sh/test/harness/workday"
)

// A working day is from 8 to 18 o'clock; all its times are since 8.
const (
	workday = profile.Length
	noon    = 4 * time.Hour
	// fixed is when somebody who keeps placeholders by hand hears of the template's change at noon.
	fixed = 6 * time.Hour
)

// arrival is a Workspace that somebody starts, and stops when it has run for a while.
type arrival struct {
	simulation.Workspace

	at, stays time.Duration
}

// images are those of the templates by kind, before noon and after it.
type images struct{ before, after map[string]string }

var firstDay = images{
	before: map[string]string{"cpu": simulation.CPUImage, "gpu": simulation.GPUImage},
	after:  map[string]string{"cpu": simulation.NewCPUImage, "gpu": simulation.NewGPUImage},
}

// trace is the day of a seed with so many Workspaces, in their order. One of five has a GPU.
func trace(seed uint64, prefix string, count int, of images) []arrival {
	random := rand.New(rand.NewPCG(seed, 0))
	total := profile.Total()
	var day []arrival
	for i := range count {
		at := profile.Clock((float64(i) + random.Float64()) / float64(count) * total)
		w := simulation.Workspace{Kind: "cpu", CPU: []int64{2, 4, 6}[random.IntN(3)]}
		if random.IntN(5) == 0 {
			w.Kind, w.CPU = "gpu", 8
		}
		w.Name = fmt.Sprintf("%s%s-%03d", prefix, w.Kind, i)
		w.Image = of.before[w.Kind]
		if at >= noon {
			w.Image = of.after[w.Kind]
		}
		stays := time.Hour + time.Duration(random.ExpFloat64()*float64(45*time.Minute))
		day = append(day, arrival{Workspace: w, at: at, stays: min(stays, workday+time.Hour-at)})
	}
	slices.SortStableFunc(day, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	return day
}

func TestTrace(t *testing.T) {
	day := trace(1, "", 200, firstDay)
	assert.Equal(t, day, trace(1, "", 200, firstDay), "a seed has one day")
	assert.NotEqual(t, day, trace(2, "", 200, firstDay))
	hours, kinds, names := make([]int, workday/time.Hour), map[string]int{}, map[string]bool{}
	for _, a := range day {
		hours[int(a.at/time.Hour)]++
		kinds[a.Kind]++
		names[a.Name] = true
		want := firstDay.before
		if a.at >= noon {
			want = firstDay.after
		}
		assert.Equal(t, want[a.Kind], a.Image)
		assert.LessOrEqual(t, a.at+a.stays, workday+time.Hour)
		assert.GreaterOrEqual(t, a.stays, time.Hour)
	}
	assert.Len(t, names, len(day))
	assert.Greater(t, hours[1], 2*hours[4], "more come in the morning than at lunch: %v", hours)
	assert.Greater(t, hours[5], hours[4])
	assert.InDelta(t, len(day)/5, kinds["gpu"], 20)
}
