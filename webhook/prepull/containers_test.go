package prepull_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook/prepull"
)

// containers writes init containers down as "name image" each.
func containers(lines ...string) []corev1.Container {
	var all []corev1.Container
	for _, line := range lines {
		name, image, _ := strings.Cut(line, " ")
		all = append(all, corev1.Container{Name: name, Image: image})
	}
	return all
}

func images(list string) []string { return strings.Fields(list) }

func TestChanges(t *testing.T) {
	tests := []struct {
		name   string
		init   []corev1.Container
		images []string
		want   []corev1.Container
	}{
		{name: "equal", init: containers("pull-workspace-image nb:1", "pull-workspace-image-2 x:1"), images: images("nb:1 x:1")},
		{name: "set", init: containers("pull-workspace-image nb:0"), images: images("nb:1"), want: containers("pull-workspace-image nb:1")},
		{name: "added", init: containers("pull-workspace-image a"), images: images("a b c"), want: containers("pull-workspace-image a", "pull-workspace-image-2 b", "pull-workspace-image-3 c")},
		{name: "removed", init: containers("pull-workspace-image a", "pull-workspace-image-2 b", "pull-workspace-image-3 c"), images: images("a"), want: containers("pull-workspace-image a")},
		{name: "moved up", init: containers("pull-workspace-image a", "pull-workspace-image-2 b"), images: images("b"), want: containers("pull-workspace-image b")},
		{name: "a gap is filled", init: containers("pull-workspace-image a", "pull-workspace-image-3 c"), images: images("a b c"), want: containers("pull-workspace-image a", "pull-workspace-image-3 c", "pull-workspace-image-2 b")},
		{name: "removed beyond, added within", init: containers("pull-workspace-image a", "pull-workspace-image-9 b"), images: images("a b"), want: containers("pull-workspace-image a", "pull-workspace-image-2 b")},
		{name: "by name, not by order", init: containers("pull-workspace-image-2 b", "pull-workspace-image a"), images: images("a c"), want: containers("pull-workspace-image-2 c", "pull-workspace-image a")},
		{
			name:   "others stay before, between and after",
			init:   containers("x q", "pull-workspace-image-3 c", "y q", "pull-workspace-image a", "pull-workspace-image-2 b", "z q"),
			images: images("n"),
			want:   containers("x q", "y q", "pull-workspace-image n", "z q"),
		},
		{name: "no image is wanted", init: containers("pull-workspace-image a", "pull-workspace-image-2 b")},
		{name: "no first container", init: containers("pull-workspace-image-2 b", "x q"), images: images("a b")},
		{name: "no container", images: images("a")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			changes := prepull.Changes(test.init, test.images)
			if test.want == nil {
				assert.Empty(t, changes)
				test.want = test.init
			}
			got := prepull.Apply(test.init, changes)
			assert.Equal(t, test.want, got)
			assert.Empty(t, prepull.Changes(got, test.images), "again")
		})
	}
}

func TestForeignNames(t *testing.T) {
	for _, suffix := range []string{"-1", "-0", "-02", "-+2", "--2", "-x", "-2x", "-", "2", "-2-2", "-99999999999999999999", "s"} {
		init := containers("pull-workspace-image a", prepull.Name+suffix+" q")
		assert.Equal(t, images("a"), prepull.Pulled(init), suffix)
		assert.False(t, prepull.Owns(prepull.Name+suffix), suffix)
		assert.Equal(t, append(containers("pull-workspace-image n"), init[1]), prepull.Apply(init, prepull.Changes(init, images("n"))), suffix)
	}
}

func TestPulled(t *testing.T) {
	init := containers("pull-workspace-image-10 j", "x q", "pull-workspace-image-2 b", "pull-workspace-image a")
	assert.Equal(t, images("a b j"), prepull.Pulled(init), "in the order of the numbers")
	assert.Empty(t, prepull.Pulled(nil))
	for i := range 12 {
		assert.True(t, prepull.Owns(prepull.ContainerName(i)))
	}
	assert.True(t, prepull.HasFirst(init))
	assert.False(t, prepull.HasFirst(init[:3]))
}

func TestSame(t *testing.T) {
	init := containers("x q", "pull-workspace-image a", "pull-workspace-image-2 b")
	assert.True(t, prepull.Same(init, containers("pull-workspace-image-2 b", "pull-workspace-image a")))
	assert.True(t, prepull.Same(nil, containers("x q", "pull-workspace-image-x q")))
	for _, other := range [][]corev1.Container{
		nil,
		containers("pull-workspace-image a"),
		containers("pull-workspace-image a", "pull-workspace-image-3 b"),
		containers("pull-workspace-image b", "pull-workspace-image-2 a"),
	} {
		assert.False(t, prepull.Same(init, other))
	}
}

// What is added does as the first does, whatever that is, and shares nothing with it.
func TestAddedIsACopyOfTheFirst(t *testing.T) {
	first := corev1.Container{
		Name: prepull.Name, Image: "a", Command: []string{"/bin/true"}, ImagePullPolicy: corev1.PullIfNotPresent,
		SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(7))},
		Resources:       corev1.ResourceRequirements{Limits: corev1.ResourceList{}},
	}
	init := append(containers("x q"), first)
	got := prepull.Apply(init, prepull.Changes(init, images("b c")))
	want := *first.DeepCopy()
	want.Image = "b"
	assert.Equal(t, want, got[1])
	want.Name, want.Image = prepull.Name+"-2", "c"
	assert.Equal(t, want, got[2])
	got[2].Command[0], *got[2].SecurityContext.RunAsUser = "changed", 0
	assert.Equal(t, "/bin/true", first.Command[0])
	assert.EqualValues(t, 7, *first.SecurityContext.RunAsUser)
}

// FuzzChanges holds random init containers to what Changes and Images promise.
func FuzzChanges(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		init := randomInit(r)
		known, record := randomSources(r, true), prepull.Record(randomSources(r, false))
		want := prepull.Images(known, record, prepull.Pulled(init))
		input := slices.Clone(init)

		got := prepull.Apply(init, prepull.Changes(init, want))
		assert.Equal(t, input, init, "the input is unchanged")
		assert.Equal(t, foreign(init), foreign(got), "other containers stay as they are, in order")
		if !prepull.HasFirst(init) || len(want) == 0 {
			assert.Equal(t, init, got)
			return
		}
		assert.Equal(t, want, prepull.Pulled(got), "it pulls exactly the images")
		assert.Empty(t, prepull.Changes(got, want), "a second pass changes nothing")
		assert.Equal(t, want, prepull.Images(known, record, prepull.Pulled(got)), "and wants the same")

		next := prepull.NewRecord(known, record)
		assert.Equal(t, next, prepull.NewRecord(known, next), "a second record is the same")
		assert.Equal(t, next, prepull.RecordOf(next.Annotations()), "read as it was written")
		synced := prepull.Images(known, next, want)
		assert.Equal(t, want, synced, "what was synced is wanted by its own record too")
	})
}

func foreign(init []corev1.Container) []corev1.Container {
	return slices.DeleteFunc(slices.Clone(init), func(c corev1.Container) bool { return prepull.Owns(c.Name) })
}

// randomInit makes init containers of unlike names, as the API server asks for, in any order.
func randomInit(r *rand.Rand) []corev1.Container {
	names := []string{"x", "y", prepull.Name, prepull.Name + "-02", prepull.Name + "-x"}
	for i := range 6 {
		names = append(names, prepull.ContainerName(i+1))
	}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var init []corev1.Container
	for _, name := range names[:r.IntN(len(names)+1)] {
		init = append(init, corev1.Container{Name: name, Image: randomImage(r)})
	}
	return init
}

// randomSources makes up to three sources, some of one template; with unknown ones among them where asked for.
func randomSources(r *rand.Rand, unknown bool) []prepull.Source {
	var all []prepull.Source
	for range r.IntN(6) {
		image := randomImage(r)
		if unknown && r.IntN(3) == 0 {
			image = ""
		}
		all = append(all, sources(string("abc"[r.IntN(3)])+" "+image)...)
	}
	return all
}

func randomImage(r *rand.Rand) string { return "r/nb:" + strconv.Itoa(r.IntN(8)) }
