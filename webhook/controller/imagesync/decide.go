package imagesync

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/prepull"
)

const (
	// burst is the time after a write in which another change may belong to the same hand; it then has to rest for settle
	// before it is written, but waits no longer than patience.
	burst, settle, patience = 10 * time.Second, 2 * time.Second, 30 * time.Second
	// answers is how many times a revert is answered before backOff passes.
	answers = 2
	backOff = 10 * time.Minute
)

// memory is what the leader remembers about a placeholder. Only one Reconcile at a time has it.
type memory struct {
	uid types.UID
	// from is the resourceVersion that the last write started from, generation what it led to, written when.
	from       string
	generation int64
	written    time.Time
	// last is when images were written last.
	last time.Time
	// due are the images that were due at the last look, and since when these and any were.
	due             string
	dueSince, since time.Time
	// answered is how many reverts were answered one after the other, and when the last one was.
	answered     int
	lastAnswered time.Time
	refusal      refusal
	// unanswered is how long the last wait for warmpool's own webhook was; zero when that has answered.
	unanswered time.Duration
	// said are the keys of the notices that are in force, so that none is announced twice.
	said map[string]bool
}

// refusal is that the API server does not take some images: it is not asked again until some time has passed.
type refusal struct {
	images []string
	notice notice
	until  time.Time
}

// newMemory goes by what a leader before this one left in the annotations.
func newMemory(d *appsv1.Deployment) *memory {
	last, err := time.Parse(time.RFC3339, d.Annotations[prepull.SyncedAt])
	if err != nil {
		last = time.Time{}
	}
	return &memory{uid: d.UID, last: last}
}

// behind is how long a Deployment that does not show yet what was written is not judged: the watch should bring it soon.
func (m *memory) behind(d *appsv1.Deployment, now time.Time) time.Duration {
	if m.from != d.ResourceVersion && d.Generation >= m.generation {
		return 0
	}
	return max(0, patience-now.Sub(m.written))
}

func (m *memory) wrote(now time.Time, answer bool) {
	m.last, m.due = now, ""
	m.dueSince, m.since = time.Time{}, time.Time{}
	if answer {
		m.answered++
		m.lastAnswered = now
	}
}

type writing int

const (
	writeNothing writing = iota
	// writeRecord writes the annotations alone: the images are right already.
	writeRecord
	writeImages
)

// step is the next thing to do about a placeholder.
type step struct {
	goal  goal
	write writing
	// after is when to look again without a change; 0: never.
	after time.Duration
	// since is when the change that is written was noticed.
	since time.Time
	// hold says why a write that is due waits, problems what somebody has to fix.
	hold     *notice
	problems []notice
	// reverted reports that another writer took back what was synced.
	reverted bool
}

// decide says what to do now. It changes nothing but the memory.
func decide(g goal, failing failures, m *memory, now time.Time) step {
	s := next(g, failing, m, now)
	if rest := m.refusal.until.Sub(now); s.write != writeNothing && rest > 0 && slices.Equal(m.refusal.images, g.images) {
		s.write, s.after, s.hold = writeNothing, rest, &m.refusal.notice
	}
	return s
}

func next(g goal, failing failures, m *memory, now time.Time) step {
	s := step{goal: g}
	if g.why != "" {
		s.problems = []notice{blocked("Choose", g.claimed, fmt.Sprintf("image sync leaves Deployment %s/%s alone: %s", g.deployment.Namespace, g.deployment.Name, g.why))}
	}
	if !g.known || g.deployment.DeletionTimestamp != nil {
		return s
	}
	s.problems = problemsOf(g, failing)
	if g.reached() {
		m.due, m.dueSince, m.since = "", time.Time{}, time.Time{}
		return recorded(s, m, now)
	}
	if len(g.changes) == 0 {
		return s // there is no container to set an image in
	}
	if due := strings.Join(g.images, ","); m.due != due {
		m.due, m.dueSince = due, now
		if m.since.IsZero() {
			m.since = now
		}
	}
	s.since = m.since
	s.reverted = g.recorded() && g.record.Covers(g.images) // two templates that change places are an edit
	if s.hold = holdOf(g, failing); s.hold != nil {
		return s
	}
	if s.reverted {
		return answer(s, m, now)
	}
	s.after = m.wait(now)
	if s.after == 0 {
		s.write = writeImages
	}
	return s
}

// recorded has the record written that is missing. Nothing is synced where there is no container for it.
func recorded(s step, m *memory, now time.Time) step {
	if s.goal.recorded() || s.goal.elsewhere != "" || !s.goal.hasFirst() {
		return s
	}
	// Somebody who drops the annotations again and again costs a write now and then.
	if s.after = max(0, m.written.Add(burst).Sub(now)); s.after == 0 {
		s.write = writeRecord
	}
	return s
}

// problemsOf are the sources that are not known, a missing container, and images that cannot be pulled.
func problemsOf(g goal, failing failures) []notice {
	var problems []notice
	for _, source := range g.sources {
		if source.Problem != "" {
			effect := " keeps the image that it had: "
			if source.Beyond {
				effect = " pulls no more images: "
			}
			problems = append(problems, blocked("Resolve", []config.TemplateRef{source.Template},
				fmt.Sprintf("Deployment %s/%s%s%s", g.deployment.Namespace, g.deployment.Name, effect, source.Problem)))
		}
	}
	if !g.hasFirst() && !g.elsewherePulled() {
		problems = append(problems, blocked("Find", nil, "no init container is called "+prepull.Name+": add one with a command that ends; image sync adds none by itself"))
	}
	for _, image := range g.images {
		if f, ok := failing[image]; ok {
			n := blocked("Pull", g.templatesOf(image),
				fmt.Sprintf("placeholder pod %s cannot pull %s (%s): no further rollout of it is started", f.pod, image, f.reason))
			n.key = "Pull " + image // the kubelet words it otherwise every few seconds
			problems = append(problems, n)
		}
	}
	return problems
}

// holdOf says why a write waits for somebody else.
func holdOf(g goal, failing failures) *notice {
	held := policy.ImagesHeld(g.deployment)
	stuck := slices.ContainsFunc(g.images, func(image string) bool { _, ok := failing[image]; return ok })
	var n notice
	switch {
	case g.elsewhere != "":
		n = blocked("Write", nil, fmt.Sprintf("image sync may write in namespace %s only: move the placeholder there, or apply it again (the webhook then sets the image)", g.elsewhere))
	case held != "":
		n = notice{kind: corev1.EventTypeNormal, reason: reasonWaiting, action: "Wait", note: fmt.Sprintf("%s is due, and waits because %s", list(g.images), held)}
	case stuck:
		return &notice{} // problemsOf says why
	default:
		return nil
	}
	return &n
}

// answer writes again what another writer took back, a few times and then not for a while.
func answer(s step, m *memory, now time.Time) step {
	rest := m.lastAnswered.Add(backOff).Sub(now)
	switch {
	case rest <= 0:
		m.answered = 0
	case m.answered >= answers:
		s.after = rest
		s.hold = &notice{kind: corev1.EventTypeWarning, reason: reasonBackOff, result: resultBackedOff, action: "Wait", note: fmt.Sprintf(
			"another writer takes back %s to %s again and again: image sync waits for %s", list(s.goal.images), list(s.goal.pulled), backOff)}
		return s
	}
	s.write = writeImages
	return s
}

// wait is how long a change has to rest before it is written: not at all, unless it follows another one closely.
func (m *memory) wait(now time.Time) time.Duration {
	if m.since.Sub(m.last) > burst || now.Sub(m.since) >= patience {
		return 0
	}
	return max(0, settle-now.Sub(m.dueSince))
}
