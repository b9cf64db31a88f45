package scaling

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/demand"
)

// store keeps what is known of the demand.
type store struct {
	reader client.Reader // without a cache
	writer client.Writer
	key    client.ObjectKey
	// last is what was read or written last.
	last map[string]string
}

// read gives what is kept. The state is nil where that cannot be known now; with a state, the error says what of it is lost.
func (s *store) read(ctx context.Context, now time.Time) (*demand.State, error) {
	kept, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	s.last = kept.Data
	return demand.Read(kept.Data, now)
}

func (s *store) get(ctx context.Context) (*corev1.ConfigMap, error) {
	kept := &corev1.ConfigMap{}
	err := s.reader.Get(ctx, s.key, kept)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read ConfigMap %s: %w", s.key, err)
	}
	return kept, nil
}

// errOthers says that somebody else has written the ConfigMap meanwhile.
var errOthers = errors.New("somebody else has written it")

// write keeps the state, unless that is what is kept already. It reads first: what a newer warmpool has written stays. alone tells to
// write nothing where somebody else has, as the next leader may have done.
func (s *store) write(ctx context.Context, state *demand.State, now time.Time, alone bool) error {
	kept, err := s.get(ctx)
	if err != nil {
		return err
	}
	if alone && !maps.Equal(kept.Data, s.last) {
		return errOthers
	}
	data, full := state.Write(kept.Data, now)
	switch {
	case data == nil:
		return full
	case maps.Equal(data, kept.Data):
		return full
	case kept.ResourceVersion == "":
		kept.Namespace, kept.Name, kept.Data = s.key.Namespace, s.key.Name, data
		err = s.writer.Create(ctx, kept)
	default:
		kept.Data, kept.BinaryData = data, nil
		err = s.writer.Update(ctx, kept)
	}
	if err != nil {
		return fmt.Errorf("write ConfigMap %s: %w", s.key, err)
	}
	s.last = data
	return full
}
