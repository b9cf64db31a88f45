package policysync

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"warmpool.sh/webhook/cel"
	"warmpool.sh/webhook/controller/follow"
	"warmpool.sh/webhook/policy"
)

const (
	// interval is how often the leader looks whether others have changed what it wrote.
	interval = 30 * time.Second
	// again is when it tries once more what has failed.
	again = 5 * time.Second
	// margin is how long samples have to be right before the policy counts as being in force. They show what one API server
	// goes by; others read what was written by watches of their own, about a second late.
	margin = 10 * time.Second
)

var errUnwritten = errors.New("the policy that places pods has not been looked at yet")

// Keeper keeps the policy current. It writes on the leader only; whether the API server has such policies at all, every
// replica asks.
type Keeper struct {
	follow.Signal
	log       logr.Logger
	source    func() *policy.Evaluator
	namespace string
	api       client.Client // without a cache
	resources discovery.ServerResourcesInterface
	metrics

	served atomic.Bool
	mu     sync.Mutex
	fault  error // nil: the policy places pods as the webhook would, or this replica does not lead

	// kept is what was written and tried last, nil before the first and after a fault, and to be looked at again at due. settled
	// tells that all API servers go by it.
	kept    *cel.Placement
	due     time.Time
	settled bool
}

var _ manager.LeaderElectionRunnable = (*Keeper)(nil)

// New makes a Keeper that goes by the Evaluator that source gives, nil while there is none. namespace is warmpool's own.
func New(mgr ctrl.Manager, source func() *policy.Evaluator, namespace string) (*Keeper, error) {
	api, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	resources, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return &Keeper{
		log: mgr.GetLogger().WithName("placement"), source: source, namespace: namespace, api: api, resources: resources,
		Signal: follow.New(), metrics: newMetrics(),
	}, nil
}

// NeedLeaderElection says yes: two replicas may know different NodePools for a moment, and would write in turns.
func (k *Keeper) NeedLeaderElection() bool { return true }

// Ready is a readiness check. It fails, and says why, where the API server has no such policies, and on the leader while
// the policy is not what configuration and facts ask for, or places the samples otherwise than the webhook.
func (k *Keeper) Ready(*http.Request) error {
	if err := k.isServed(); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fault
}

// isServed asks until the answer is yes.
func (k *Keeper) isServed() error {
	if k.served.Load() {
		return nil
	}
	if err := Served(k.resources); err != nil {
		return err
	}
	k.served.Store(true)
	return nil
}

// Served tells what is wrong where an API server has no MutatingAdmissionPolicy of the version that package cel writes, or
// cannot be asked.
func Served(resources discovery.ServerResourcesInterface) error {
	version := admissionv1.SchemeGroupVersion.String()
	list, err := resources.ServerResourcesForGroupVersion(version)
	if err != nil {
		return fmt.Errorf("whether the API server has MutatingAdmissionPolicy is not known: %w", err)
	}
	if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == "MutatingAdmissionPolicy" }) {
		return fmt.Errorf("this API server has no MutatingAdmissionPolicy in %s, which Kubernetes has from 1.36 on: keep the webhook of pods", version)
	}
	return nil
}

// Start keeps the policy until ctx ends; it returns nil then.
func (k *Keeper) Start(ctx context.Context) error {
	k.say(errUnwritten, false)
	for {
		err := k.keep(ctx)
		if ctx.Err() != nil {
			return nil
		}
		k.say(err, k.settled)
		wait := time.Until(k.due)
		if err != nil {
			wait = again
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.Signal:
		case <-time.After(wait):
		}
	}
}

// say makes the state known; the log has what changes.
func (k *Keeper) say(fault error, settled bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.setCurrent(fault == nil && settled)
	switch {
	case errors.Is(fault, errUnwritten):
	case fault != nil && (k.fault == nil || k.fault.Error() != fault.Error()):
		k.log.Error(fault, "the policy that places pods is not current, trying again")
	case fault == nil && settled && !was:
		k.log.Info("the policy that places pods is current")
	}
	k.fault = fault
}

// keep brings what the Evaluator asks for into the cluster.
func (k *Keeper) keep(ctx context.Context) error {
	e := k.source()
	if e == nil {
		return errUnwritten // Changed tells when there is one
	}
	if err := k.isServed(); err != nil {
		return err
	}
	want, err := cel.NewPlacement(e, k.namespace)
	if err != nil {
		return fmt.Errorf("write the placement as a policy: %w", err)
	}
	known := k.kept != nil && same(k.kept, want)
	if known && time.Now().Before(k.due) {
		return nil
	}
	k.kept = nil
	return k.renew(ctx, e, want, known)
}

// renew writes what differs, and tells that it is in force once samples have come out right by it for a while. known tells
// that it was written before.
func (k *Keeper) renew(ctx context.Context, e *policy.Evaluator, want *cel.Placement, known bool) error {
	binding, absent, wrong := k.shipped(ctx, want)
	if absent != nil {
		return absent
	}
	live, wrote, err := k.write(ctx, e, want)
	if err != nil {
		return errors.Join(wrong, err)
	}
	k.settled = k.settled && known && !wrote
	if !k.settled {
		if err := k.check(ctx, e, live, nil); err != nil {
			return errors.Join(wrong, err)
		}
	}
	switch {
	case wrong != nil:
		return wrong
	case wrote || !known:
		k.kept, k.due = want, time.Now().Add(margin)
		return nil
	}
	if err := k.tell(ctx, want, live, binding); err != nil {
		return err
	}
	k.kept, k.due, k.settled = want, time.Now().Add(interval), true
	return nil
}

func same(a, b *cel.Placement) bool {
	return maps.Equal(a.Parameters.Data, b.Parameters.Data) && equality.Semantic.DeepEqual(a.Policy.Spec, b.Policy.Spec)
}
