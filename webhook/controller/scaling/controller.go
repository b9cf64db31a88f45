package scaling

import (
	"context"
	"maps"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/controller/starts"
	"warmpool.sh/webhook/demand"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/redact"
	"warmpool.sh/webhook/sizing"
)

const (
	// interval is the time between two steps. Between two writes of a scale of one pool pass two at least.
	interval = 15 * time.Second
	// saving is the least time between two writes of what is known, resting the time where no Workspace starts and no node gets warm.
	saving  = time.Minute
	resting = 5 * time.Minute
	// usualLead is how long a placeholder takes to get warm, until one has told.
	usualLead = 7 * time.Minute
	// lastWords is how long the last write may take when the leader ends.
	lastWords = 5 * time.Second
)

// Teller makes Events; an events.Recorder is one.
type Teller interface {
	Eventf(regarding, related runtime.Object, kind, reason, action, format string, args ...any)
}

// Options are what a Controller is made from.
type Options struct {
	// Source gives the Evaluator in force, nil while there is none, and Sizes what it judges by.
	Source func() *policy.Evaluator
	Sizes  func() *sizing.Sizes
	Events Teller
	// Occupants tell which nodes have Workspaces.
	Occupants *starts.Occupancy
	// Namespace is warmpool's own.
	Namespace string
	// Clock tells the time that pools go by from that of the machine, and Interval the time of the machine between two steps; tests
	// make days short by them. Nil and 0: the machine's, and 15 seconds.
	Clock    func(time.Time) time.Time
	Interval time.Duration
}

// Controller sizes pools by demand. It works on the leader only.
type Controller struct {
	*recorder

	log       logr.Logger
	sizes     func() *sizing.Sizes
	events    Teller
	occupants occupants
	reader    client.Reader // without a cache
	writer    client.Client
	store     *store
	interval  time.Duration

	// What follows is of the loop alone. state is nil until it was read. began is when the loop has begun, saved the last write by the
	// machine's clock, as all that bounds writes: it does not jump.
	state    *demand.State
	began    time.Time
	saved    time.Time
	learned  bool   // something since
	fault    string // the last one of the store that was logged
	config   *config.WarmPoolConfiguration
	pools    map[string]*pool
	promised map[types.UID]promise
	used     usage
}

// usage is what Karpenter counted at a time.
type usage struct {
	at  time.Time
	by  map[string]corev1.ResourceList
	err error
}

// promise is what a start was promised that has not run yet.
type promise struct {
	hits float64
	at   time.Time
}

var (
	_ manager.LeaderElectionRunnable = (*Controller)(nil)
	_ starts.Listener                = (*Controller)(nil)
)

// New makes a Controller. It is to listen to the Controller of package starts.
func New(mgr ctrl.Manager, o Options) *Controller {
	if o.Clock == nil {
		o.Clock = func(t time.Time) time.Time { return t }
	}
	if o.Interval == 0 {
		o.Interval = interval
	}
	return &Controller{
		recorder: newRecorder(o.Source, o.Clock), log: mgr.GetLogger().WithName("scaling"), sizes: o.Sizes, events: o.Events,
		occupants: o.Occupants, reader: mgr.GetAPIReader(), writer: mgr.GetClient(), interval: o.Interval,
		store: &store{reader: mgr.GetAPIReader(), writer: mgr.GetClient(), key: client.ObjectKey{Namespace: o.Namespace, Name: demand.ConfigMapName}},
		pools: map[string]*pool{}, promised: map[types.UID]promise{},
	}
}

// NeedLeaderElection says yes: two would write in turns.
func (c *Controller) NeedLeaderElection() bool { return true }

// Start sizes pools until ctx ends; it returns nil then.
func (c *Controller) Start(ctx context.Context) error {
	ticks := time.NewTicker(c.interval)
	defer ticks.Stop()
	c.began = time.Now()
	for {
		c.step(ctx)
		select {
		case <-ctx.Done():
			c.end(ctx)
			return nil
		case <-ticks.C:
		}
	}
}

// end keeps what is known, unless the next leader has done so.
func (c *Controller) end(ctx context.Context) {
	if c.state == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	c.say(c.store.write(ctx, c.state, c.clock(time.Now()), true))
}

// step takes in what is new, and sizes each pool once.
func (c *Controller) step(ctx context.Context) {
	now := c.clock(time.Now())
	e, sizes := c.source(), c.sizes()
	if e == nil || sizes == nil || !c.load(ctx, now) {
		return
	}
	c.configure(e)
	for _, n := range c.take(now) {
		c.learn(n, now)
	}
	maps.DeleteFunc(c.promised, func(_ types.UID, was promise) bool { // what never ran
		return now.Sub(was.at) > time.Hour || was.at.Sub(now) > time.Hour
	})
	found := findPlaceholders(e, now, c.clock)
	for _, p := range e.Pools().All() {
		c.pools[p.Config.Name].step(ctx, c, e, sizes.Pool(p.Config.Name), p, found[p.Config.Name], now)
	}
	if age := time.Since(c.saved); age >= resting || age >= saving && c.learned {
		c.saved, c.learned = time.Now(), false
		c.say(c.store.write(ctx, c.state, now, false))
	}
}

// load reads what the leader before knew; false: not yet.
func (c *Controller) load(ctx context.Context, now time.Time) bool {
	if c.state != nil {
		return true
	}
	state, err := c.store.read(ctx, now)
	if apierrors.IsForbidden(err) {
		state = &demand.State{Pools: map[string]*demand.Pool{}}
	}
	c.say(err)
	if c.state = state; len(c.store.last) > 0 {
		c.saved = time.Now()
	}
	return state != nil
}

// say logs what is wrong with what is kept, once.
func (c *Controller) say(err error) {
	text := ""
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		text = err.Error()
	}
	if text != "" && text != c.fault {
		c.log.Error(redact.Error(err), "what is known of the demand is not kept in full", "namespace", c.store.key.Namespace, "name", c.store.key.Name)
	}
	c.fault = text
}

// nodesInUse asks once a step.
func (c *Controller) nodesInUse(ctx context.Context, version string, now time.Time) (map[string]corev1.ResourceList, error) {
	if !c.used.at.Equal(now) {
		c.used = usage{at: now}
		c.used.by, c.used.err = nodesInUse(ctx, c.reader, version)
	}
	return c.used.by, c.used.err
}
