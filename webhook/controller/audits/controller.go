package audits

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"warmpool.sh/webhook/audit"
	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/cluster/live"
	"warmpool.sh/webhook/controller/follow"
	"warmpool.sh/webhook/demand"
	"warmpool.sh/webhook/events"
	"warmpool.sh/webhook/policy"
	"warmpool.sh/webhook/redact"
	"warmpool.sh/webhook/version"
)

// limit is how long one audit may take.
const limit = 5 * time.Minute

// withoutRBAC is why no audit here verifies the rights of others: to read all roles of a cluster is much to ask for.
const withoutRBAC = "warmpool serve reads no roles; run warmpool audit"

// recorder records Events; it is that of webhook/events.
type recorder interface {
	Eventf(regarding, related runtime.Object, kind, reason, action, format string, args ...any)
	Once(name string, regarding runtime.Object, kind, reason, action, note string)
}

// Options say what is warmpool's own.
type Options struct {
	// Webhooks is the name of the webhook configurations of placeholders, PodsWebhook that of the webhook of pods.
	Webhooks, PodsWebhook string
	// Configuration is the ConfigMap with the configuration: Events go there that are about no object of their own.
	Configuration client.ObjectKey
}

// Controller audits the cluster. It works on the leader only.
type Controller struct {
	follow.Signal
	log     logr.Logger
	source  func() *policy.Evaluator
	options Options
	connect func() (client.Client, error)

	schedule  schedule
	gauge     gauge
	announcer announcer
	// denied are the kinds that could not be read at the last audit.
	denied []string
}

var _ manager.LeaderElectionRunnable = (*Controller)(nil)

// New makes a Controller that goes by the Evaluator that source gives; nil while there is none.
func New(mgr ctrl.Manager, source func() *policy.Evaluator, events *events.Recorder, options Options) *Controller {
	return &Controller{
		log: mgr.GetLogger().WithName("audit"), source: source, options: options,
		connect: connector(mgr.GetConfig(), mgr.GetHTTPClient()),
		Signal:  follow.New(), announcer: announcer{events: events, configuration: options.Configuration},
	}
}

// connector makes clients that ask the API server itself, each of which finds out anew which CRDs there are.
func connector(config *rest.Config, transport *http.Client) func() (client.Client, error) {
	return func() (client.Client, error) {
		api, err := client.New(config, client.Options{HTTPClient: transport})
		if err != nil {
			return nil, fmt.Errorf("make client: %w", err)
		}
		return api, nil
	}
}

// NeedLeaderElection says yes: one audit is enough, and one writer of its reports.
func (c *Controller) NeedLeaderElection() bool { return true }

// Start audits until ctx ends; it returns nil.
func (c *Controller) Start(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.Signal:
		case <-timer.C:
		}
		e := c.source()
		if e == nil {
			continue // Changed reports when there is one
		}
		if !c.schedule.due(e, time.Now()).After(time.Now()) {
			c.run(ctx, e)
		}
		timer.Reset(time.Until(c.schedule.due(e, time.Now())))
	}
}

// run makes one audit and reports how it went.
func (c *Controller) run(ctx context.Context, e *policy.Evaluator) {
	started := time.Now()
	err := c.audit(ctx, e)
	if ctx.Err() != nil {
		return // warmpool ends, or leads no more
	}
	c.schedule.done(e, started, time.Now(), err == nil)
	duration.Set(time.Since(started).Seconds())
	if err != nil {
		audits.WithLabelValues(resultError).Inc()
		c.log.Error(redact.Error(err), "audit failed, trying again")
		return
	}
	audits.WithLabelValues(resultSuccess).Inc()
	lastSuccess.SetToCurrentTime()
}

// audit reads, judges and reports. A fault of warmpool's own ends the audit and not the admissions of this process.
func (c *Controller) audit(ctx context.Context, e *policy.Evaluator) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			// Of what type only: the value may quote an object.
			err = fmt.Errorf("panic with a %T", fault)
			c.log.Error(err, "audit failed", "stack", string(debug.Stack()))
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	api, err := c.connect()
	if err != nil {
		return err
	}
	report, facts, err := c.judge(ctx, api, e)
	if err != nil {
		return err
	}
	c.gauge.show(report)
	made, left := c.announcer.announce(report, facts)
	written, err := publish(ctx, api, report)
	c.log.V(1).Info("audited", "objects", report.Summary.Objects, "errors", report.Summary.Error, "warnings", report.Summary.Warning,
		"events", made, "reports", written)
	if left > 0 {
		c.log.Info("new errors for which the next audits make Events: too many at once", "count", left)
	}
	return err
}

// judge asks all rules about what the watches have and what is read now.
func (c *Controller) judge(ctx context.Context, api client.Client, e *policy.Evaluator) (*audit.Report, *cluster.Snapshot, error) {
	facts, cfg := *e.Facts(), e.Config()
	selector, err := metav1.LabelSelectorAsSelector(cfg.Workspaces.Selector)
	if err != nil {
		return nil, nil, fmt.Errorf("workspaces.selector: %w", err)
	}
	reading := live.ReadingBy(api)
	scope := live.Scope{
		Workspaces: selector, Placeholders: cfg.Placeholders.Namespace, IsPlaceholder: e.IsPlaceholder,
		Webhooks: c.options.Webhooks, PodsWebhook: c.options.PodsWebhook, WithoutRBAC: withoutRBAC,
	}
	if cfg.SizesPools() {
		scope.Demand = client.ObjectKey{Namespace: c.options.Configuration.Namespace, Name: demand.ConfigMapName}
	}
	facts.Around = reading.Around(ctx, &facts, scope)
	if err := reading.Failed(); err != nil {
		return nil, nil, err
	}
	if denied := reading.Denied(); !slices.Equal(denied, c.denied) {
		c.denied = denied
		c.log.Info("audits do not verify what warmpool may not read", "kinds", denied)
	}
	evaluator, err := policy.New(cfg, &facts, time.Now())
	if err != nil {
		return nil, nil, err
	}
	findings, objects := evaluator.Audit()
	report := audit.New(findings, objects, nil)
	report.Time, report.Version = time.Now(), version.Get()
	return report, &facts, nil
}
