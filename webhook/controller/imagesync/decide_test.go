package imagesync

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/prepull"
)

func both(r *rig, image string) {
	r.templates["shared/a"].DefaultImage = image
	r.edit("b", image)
}

func TestRecordIsWrittenOnceAndStartsNoRollout(t *testing.T) {
	r := newRig(t)
	r.look()
	r.pass(time.Hour)
	require.Len(t, r.writes, 1)
	assert.Zero(t, r.rollouts())
	assert.Equal(t, "r/a:1,r/a:1", r.server.Annotations[prepull.SyncedImage])
	assert.Equal(t, "shared/a,shared/b", r.server.Annotations[prepull.SyncedTemplate])
	assert.Equal(t, "2026-01-01T00:00:00Z", r.server.Annotations[prepull.SyncedAt])
	assert.Empty(t, r.noted)
}

// Whoever drops the annotations as soon as they are there does not keep the API server busy.
func TestRecordThatIsDroppedRests(t *testing.T) {
	r := newRig(t)
	r.look()
	for range 100 {
		r.change(func(d *appsv1.Deployment) { d.Annotations = nil })
		r.pass(time.Second)
	}
	assert.LessOrEqual(t, len(r.writes), 11)
	assert.Zero(t, r.rollouts())
}

func TestFirstChangeIsWrittenAtOnceAndABurstRests(t *testing.T) {
	r := newRig(t)
	r.look()
	both(r, "r/a:2")
	assert.Equal(t, []string{"r/a:2"}, r.pulled(), "at once")
	assert.Equal(t, []string{"Normal ImageSynced: Deployment overprovisioning/ph of pool cpu pulls r/a:2 now (before: r/a:1)"}, r.heard())
	for _, image := range []string{"r/a:3", "r/a:4", "r/a:5"} {
		r.pass(time.Second)
		both(r, image)
	}
	assert.Equal(t, 1, r.rollouts())
	r.pass(settle - time.Millisecond)
	assert.Equal(t, 1, r.rollouts(), "it may go on")
	r.pass(time.Millisecond)
	assert.Equal(t, []string{"r/a:5"}, r.pulled())
	assert.Equal(t, 2, r.rollouts())
	r.pass(burst + time.Second)
	both(r, "r/a:6")
	assert.Equal(t, 3, r.rollouts(), "no burst any more")
}

func TestABurstWaitsNoLongerThanPatience(t *testing.T) {
	r := newRig(t)
	r.look()
	both(r, "r/a:2")
	began := r.now
	for i := 0; r.rollouts() == 1; i++ {
		require.Less(t, i, 100)
		r.pass(time.Second)
		both(r, []string{"r/a:3", "r/a:4"}[i%2])
	}
	assert.InDelta(t, patience, r.now.Sub(began), float64(2*time.Second))
}

// What changes and changes back before it is written is no change.
func TestAChangeThatIsTakenBackWritesNothing(t *testing.T) {
	r := newRig(t)
	r.look()
	both(r, "r/a:2")
	r.pass(time.Second)
	both(r, "r/a:3")
	r.pass(time.Second)
	both(r, "r/a:2")
	r.pass(time.Hour)
	assert.Equal(t, 1, r.rollouts())
}

func TestRevertsAreAnsweredTwiceAndThenNotForAWhile(t *testing.T) {
	r := newRig(t)
	r.look()
	both(r, "r/a:2")
	r.heard()
	for range 24 {
		r.pass(70 * time.Second)
		r.pull("r/a:1")
	}
	var answers []float64
	for _, w := range r.writes {
		if w.answer {
			answers = append(answers, w.at.Sub(r.writes[0].at).Seconds())
		}
	}
	assert.Equal(t, []float64{70, 140, 740, 770, 1370, 1400}, answers)
	backOffs := slices.DeleteFunc(r.heard(), func(noted string) bool { return !strings.HasPrefix(noted, "Warning") })
	assert.Len(t, backOffs, 3, "one Event for each")
	assert.Equal(t, "Warning ImageSyncBackOff: another writer takes back r/a:2 to r/a:1 again and again: image sync waits for 10m0s; field manager: gitops", backOffs[0])
	// A change of the template is none of the fight.
	both(r, "r/a:3")
	assert.Equal(t, []string{"r/a:3"}, r.pulled())
}

// Two templates that change places are edited, not reverted.
func TestTemplatesThatChangePlacesAreNoFight(t *testing.T) {
	r := newRig(t)
	r.edit("b", "r/b:1")
	for range 5 {
		r.pass(time.Minute)
		a, b := r.templates["shared/a"].DefaultImage, r.templates["shared/b"].DefaultImage
		r.templates["shared/a"].DefaultImage = b
		r.edit("b", a)
		assert.Equal(t, []string{b, a}, r.pulled())
	}
	for _, w := range r.writes {
		assert.False(t, w.answer)
	}
}

func TestHeld(t *testing.T) {
	for _, c := range []struct {
		name, noted string
		hold        func(d *appsv1.Deployment)
	}{
		{"paused", "Normal ImageSyncWaiting: r/a:2 is due, and waits because it is paused", func(d *appsv1.Deployment) { d.Spec.Paused = true }},
		{"opted out", "", func(d *appsv1.Deployment) { d.Annotations[prepull.OptOut] = "false" }},
		{"deleted", "", func(d *appsv1.Deployment) { d.DeletionTimestamp = &metav1.Time{} }},
		{"of no pool", "", func(d *appsv1.Deployment) { d.Labels["warmpool.sh/pool"] = "other" }},
		{
			"elsewhere", "Warning ImageSyncBlocked: image sync may write in namespace overprovisioning only: move the placeholder there, or apply it again (the webhook then sets the image)",
			func(d *appsv1.Deployment) { d.Namespace = "team" },
		},
		{
			"no first container", "Warning ImageSyncBlocked: no init container is called pull-workspace-image: add one with a command that ends; image sync adds none by itself",
			func(d *appsv1.Deployment) { d.Spec.Template.Spec.InitContainers[1].Name = "pull" },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.look()
			free := r.server
			both(r, "r/a:1")
			r.change(c.hold)
			both(r, "r/a:2")
			if c.name == "elsewhere" {
				assert.NotNil(t, decide(goalOf(r.evaluator(), r.seen), nil, newMemory(r.seen), r.now).hold)
				return // another key than the rig's
			}
			r.pass(time.Hour)
			assert.Zero(t, r.rollouts())
			if c.noted == "" {
				assert.Empty(t, r.noted)
			} else {
				assert.Equal(t, []string{c.noted}, r.noted, "once")
			}
			r.change(func(d *appsv1.Deployment) { free.DeepCopyInto(d); d.Generation = r.server.Generation })
			assert.Equal(t, []string{"r/a:2"}, r.pulled(), "at once when nothing holds it any more")
		})
	}
}

// What another container has already is nothing to sync, and no Event says that it is missing until it is.
func TestImageInTheMainContainerIsLeftAlone(t *testing.T) {
	r := newRig(t)
	r.change(func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.InitContainers = nil
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "hold", Image: "r/a:1"}}
	})
	r.look()
	r.pass(time.Hour)
	assert.Empty(t, r.noted)
	assert.True(t, goalOf(r.evaluator(), r.seen).reached())
	both(r, "r/a:2")
	r.pass(time.Hour)
	assert.Equal(t, []string{"Warning ImageSyncBlocked: no init container is called pull-workspace-image: add one with a command that ends; image sync adds none by itself"}, r.noted)
	assert.False(t, goalOf(r.evaluator(), r.seen).reached())
	assert.Empty(t, r.writes)
	assert.Equal(t, "r/a:1", r.server.Spec.Template.Spec.Containers[0].Image)
}

func failingPod(image, reason string) *corev1.Pod {
	p := &corev1.Pod{}
	p.Spec.InitContainers = []corev1.Container{{Name: prepull.Name, Image: image}}
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: prepull.Name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
	return p
}

func TestAnImageThatCannotBePulledIsNotRolledOutFurther(t *testing.T) {
	r := newRig(t)
	r.look()
	r.templates["shared/a"].DefaultImage = "r/typo"
	r.edit("b", "r/typo")
	require.Equal(t, []string{"r/typo"}, r.pulled())
	r.heard()
	r.pods["overprovisioning/p"] = failingPod("r/typo", "ErrImagePull")
	r.look()
	assert.Equal(t, []string{"Warning ImageSyncBlocked: placeholder pod overprovisioning/p cannot pull r/typo (ErrImagePull): no further rollout of it is started"}, r.heard())
	for _, reason := range []string{"ImagePullBackOff", "ErrImagePull", "ImagePullBackOff"} {
		r.pods = map[string]*corev1.Pod{"overprovisioning/p": failingPod("r/typo", reason)}
		r.look()
	}
	assert.Empty(t, r.heard(), "one Event, whatever the kubelet calls it")

	r.pull("r/a:1") // somebody helps by hand: nothing takes that back
	r.pass(time.Hour)
	assert.Equal(t, []string{"r/a:1"}, r.pulled())
	both(r, "r/a:2")
	assert.Equal(t, []string{"r/a:2"}, r.pulled(), "another image is the cure")
	r.heard()

	both(r, "r/typo")
	r.pass(time.Minute)
	assert.Len(t, r.heard(), 1, "another Event when it comes back")
	r.pods = map[string]*corev1.Pod{}
	r.look()
	assert.Equal(t, []string{"r/typo"}, r.pulled())
}

func TestAnEarlierLeaderIsRemembered(t *testing.T) {
	r := newRig(t)
	r.look()
	both(r, "r/a:2")
	r.controller = r.leader()
	r.pass(time.Second)
	both(r, "r/a:3")
	assert.Equal(t, 1, r.rollouts(), "it follows the write of the earlier leader closely")
	r.pass(settle)
	assert.Equal(t, 2, r.rollouts())
	r.controller = r.leader()
	r.pull("r/a:1")
	assert.True(t, r.writes[len(r.writes)-1].answer, "what the earlier leader wrote was reverted")
	r.change(func(d *appsv1.Deployment) { d.Annotations[prepull.SyncedAt] = "2999-01-01T00:00:00Z" })
	r.controller = r.leader()
	both(r, "r/a:4")
	r.pass(patience)
	assert.Equal(t, []string{"r/a:4"}, r.pulled(), "a time that is nonsense holds nothing up for long")
}

func TestProblemsAreToldOnceAndAgainWhenTheyComeBack(t *testing.T) {
	r := newRig(t)
	r.look()
	for range 2 {
		r.edit("a", "bare")
		r.pass(time.Minute)
		r.look()
		noted := r.heard()
		require.Len(t, noted, 1)
		assert.Contains(t, noted[0], `keeps the image that it had: defaultImage "bare" of WorkspaceTemplate shared/a is a bare name`)
		r.edit("a", "r/a:1")
	}
	assert.Equal(t, []string{"r/a:1"}, r.pulled())
	assert.Zero(t, r.rollouts())
}
