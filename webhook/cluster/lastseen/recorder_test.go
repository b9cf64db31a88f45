package lastseen

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var key = types.NamespacedName{Namespace: "warmpool-system", Name: "warmpool-last-seen"}

// store is a cluster that counts writes and fails the next ones.
type store struct {
	client.Client
	mu     sync.Mutex
	writes int
	fail   []error
}

func newStore(objects ...client.Object) *store {
	s := &store{}
	attempt := func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.writes++
		if len(s.fail) == 0 {
			return nil
		}
		err := s.fail[0]
		s.fail = s.fail[1:]
		return err
	}
	s.Client = fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if err := attempt(); err != nil {
				return err
			}
			return c.Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if err := attempt(); err != nil {
				return err
			}
			return c.Update(ctx, obj, opts...)
		},
	}).Build()
	return s
}

func (s *store) data(t *testing.T) map[string]string {
	t.Helper()
	configMap := &corev1.ConfigMap{}
	err := s.Get(t.Context(), key, configMap)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return configMap.Data
}

func (s *store) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

func newRecorder(s *store, log logr.Logger) *Recorder {
	r := NewRecorder(s, key.Namespace, log)
	r.now = func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }
	r.debounce, r.maxWait = time.Millisecond, 4*time.Millisecond
	return r
}

func TestWrite(t *testing.T) {
	s := newStore()
	r := newRecorder(s, logr.Discard())
	require.NoError(t, r.write(t.Context()))
	assert.Zero(t, s.written(), "nothing was recorded")
	r.Record(pools{"gpu": nil})
	require.NoError(t, r.write(t.Context()))
	assert.Zero(t, s.written(), "nothing was ever seen")

	r.Record(pools{"gpu": {node("n1", "a", "1")}, "cpu": {node("n2", "c", "1")}})
	r.Record(pools{"gpu": {node("n3", "b", "1")}, "cpu": nil})
	require.NoError(t, r.write(t.Context()))
	assert.Equal(t, 1, s.written())
	m, _ := parse(s.data(t))
	assert.Len(t, m["gpu"], 2, "also what came and went between two writes")
	assert.Len(t, m["cpu"], 1)

	r.Record(pools{"gpu": {node("n4", "a", "1")}, "cpu": nil})
	require.NoError(t, r.write(t.Context()))
	assert.Equal(t, 1, s.written(), "nothing differs")

	restarted := newRecorder(s, logr.Discard())
	restarted.Record(pools{"gpu": nil})
	require.NoError(t, restarted.write(t.Context()))
	assert.Equal(t, 2, s.written())
	m, _ = parse(s.data(t))
	assert.Len(t, m["gpu"], 2, "a pool at zero keeps what was seen before the restart")
	assert.NotContains(t, m, "cpu", "it is not configured any more")
}

func TestWriteReplacesWhatCannotBeRead(t *testing.T) {
	s := newStore(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{"mine": "kept"}},
		Data:       map[string]string{"gpu": "{", "cpu": `{"a":{"day":"2026-01-01","name":"n"}}`}, BinaryData: map[string][]byte{"x": {1}},
	})
	r := newRecorder(s, logr.Discard())
	r.Record(pools{"gpu": {node("n1", "a", "1")}, "cpu": nil})
	require.NoError(t, r.write(t.Context()))
	configMap := &corev1.ConfigMap{}
	require.NoError(t, s.Get(t.Context(), key, configMap))
	m, malformed := parse(configMap.Data)
	assert.Empty(t, malformed)
	assert.Equal(t, "n1", m["gpu"]["a"].Name)
	assert.Equal(t, "n", m["cpu"]["a"].Name)
	assert.Empty(t, configMap.BinaryData)
	assert.Equal(t, map[string]string{"mine": "kept"}, configMap.Labels)
}

func TestStartTriesAgainAndComplainsOnce(t *testing.T) {
	s := newStore()
	down := errors.New("the API server is down")
	s.fail = []error{down, down, apierrors.NewConflict(corev1.Resource("configmaps"), key.Name, nil), down}
	var mu sync.Mutex
	var lines []string
	r := newRecorder(s, funcr.New(func(_, line string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
	}, funcr.Options{}))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Start(ctx) }()
	r.Record(pools{"gpu": {node("n1", "a", "1")}})
	require.Eventually(t, func() bool { return s.data(t) != nil }, time.Minute, time.Millisecond)
	assert.Equal(t, 5, s.written())

	r.Record(pools{"gpu": {node("n1", "a", "2")}})
	require.Eventually(t, func() bool {
		m, _ := parse(s.data(t))
		cpu := m["gpu"]["a"].Allocatable[corev1.ResourceCPU]
		return cpu.Value() == 2
	}, time.Minute, time.Millisecond)
	stop()
	require.NoError(t, <-ended)
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0], "the API server is down")
}

func TestOnlyTheLeaderWrites(t *testing.T) {
	assert.True(t, newRecorder(newStore(), logr.Discard()).NeedLeaderElection())
}
