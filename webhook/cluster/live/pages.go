package live

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// pageSize is how many objects are asked for at once; fewer while they are large, for Transport refuses large pages.
const pageSize = 500

// InPages lists objects page by page and hands each on; it gives the last page. Each page is garbage before the next one is
// asked for, but for what each keeps.
func InPages(list func(limit int64, token string) (runtime.Object, error), each func(runtime.Object) error) (runtime.Object, error) {
	limit, token := int64(pageSize), ""
	for {
		page, err := list(limit, token)
		if apierrors.IsRequestEntityTooLargeError(err) && limit > 1 {
			limit = max(limit/8, 1)
			continue
		}
		if err != nil {
			if token = goOn(err, token); token != "" {
				continue
			}
			return nil, err
		}
		if err := meta.EachListItem(page, each); err != nil {
			return nil, err
		}
		of, err := meta.ListAccessor(page)
		if err != nil || of.GetContinue() == "" {
			return page, err
		}
		token, limit = of.GetContinue(), min(2*limit, pageSize)
	}
}

// goOn gives the token by which a list goes on though what it began with is too old to be read; empty for other errors.
func goOn(err error, after string) string {
	status, ok := err.(apierrors.APIStatus)
	if !ok || after == "" || !apierrors.IsResourceExpired(err) || status.Status().Continue == after {
		return ""
	}
	return status.Status().Continue
}

// newInformer makes informers that list in pages, one after the other, where the API server does not stream what there is
// (before Kubernetes 1.34): client-go's hold all objects of a kind at once, and whole.
func newInformer() func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
	turn := &sync.Mutex{}
	return func(from toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		l := &pagedLister{from: toolscache.ToListerWatcherWithContext(from), turn: turn}
		return &pagedInformer{toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
			ListWithContextFunc: l.list,
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return l.from.WatchWithContext(ctx, options)
			},
		}, example, resync, indexers), l}
	}
}

type pagedInformer struct {
	toolscache.SharedIndexInformer
	lister *pagedLister
}

// SetTransform has what is listed transformed before the next page comes, and again, as what is watched, by the informer.
func (i *pagedInformer) SetTransform(transform toolscache.TransformFunc) error {
	i.lister.transform = transform
	return i.SharedIndexInformer.SetTransform(transform)
}

type pagedLister struct {
	from      toolscache.ListerWatcherWithContext
	turn      *sync.Mutex
	transform toolscache.TransformFunc
}

func (l *pagedLister) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	l.turn.Lock()
	defer l.turn.Unlock()
	// The API server gives pages only of the present state.
	options.ResourceVersion, options.ResourceVersionMatch = "", ""
	var kept []runtime.Object
	last, err := InPages(func(limit int64, token string) (runtime.Object, error) {
		options.Limit, options.Continue = limit, token
		return l.from.ListWithContext(ctx, options)
	}, func(object runtime.Object) error {
		if l.transform != nil {
			transformed, err := l.transform(object)
			if err != nil {
				return err
			}
			if of, ok := transformed.(runtime.Object); ok {
				object = of
			}
		}
		kept = append(kept, object)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return last, meta.SetList(last, kept)
}
