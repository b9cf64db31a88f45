package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"warmpool.sh/certs"
	"warmpool.sh/webhook"
	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/cluster/lastseen"
	"warmpool.sh/webhook/cluster/live"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/controller/audits"
	"warmpool.sh/webhook/controller/imagesync"
	"warmpool.sh/webhook/controller/scaling"
	"warmpool.sh/webhook/controller/starts"
	"warmpool.sh/webhook/controller/warmlabels"
	"warmpool.sh/webhook/events"
	"warmpool.sh/webhook/policy"
)

const (
	// leaseDuration is when another replica leads after one that has ended without a word.
	leaseDuration = 45 * time.Second
	// renewDeadline is for how long a leader may not reach the API server. It ends then, and answers no admission either: a
	// restart of the API server must fit in.
	renewDeadline = 40 * time.Second
)

type serveOptions struct {
	configFile     string
	certs          certs.Options
	certsMode      string
	tls            tlsOptions
	placement      string
	shutdownDelay  time.Duration
	host           string
	port           int
	metricsAddress string
	healthAddress  string
	leaderElect    bool
	logging        *logsapi.LoggingConfiguration
	kube           kubeFlags
}

func newServeCommand() *cobra.Command {
	o := &serveOptions{logging: logsapi.NewLoggingConfiguration()}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the admission webhooks in the cluster",
		Long: `Serve answers the admission webhooks that the manifests register. Every replica serves; none waits for another.
It reads the cluster by watches only: no admission calls the API server.

The configuration is read again when its file changes. A bad new file is refused with an Event and a metric, and the old
one stays in force.`,
		Example: `  # In the cluster, as the manifests run it
  warmpool serve --config=/etc/warmpool/warmpool.yaml

  # With certificates from files
  warmpool serve --config=warmpool.yaml --certs=files --cert-dir=/etc/warmpool-tls`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := logsapi.ValidateAndApply(o.logging, nil); err != nil {
				return err
			}
			return o.run(ctrl.SetupSignalHandler())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.configFile, "config", "/etc/warmpool/warmpool.yaml", "File with the WarmPoolConfiguration")
	flags.StringVar(&o.certsMode, "certs", string(certs.ModeEmbedded), "Where the serving certificate comes from: embedded, cert-manager or files; with the last two somebody else writes caBundle")
	flags.StringVar(&o.certs.Dir, "cert-dir", "", "Folder with tls.crt and tls.key, for --certs=cert-manager and --certs=files")
	flags.StringVar(&o.placement, "placement", placementWebhook, "Who places the pods of Workspaces: webhook; cel, a policy in the API server that the leader keeps current; or none, others do")
	flags.StringVar(&o.certs.Namespace, "namespace", cmp.Or(os.Getenv("POD_NAMESPACE"), ownNamespace), "Namespace that warmpool runs in; $POD_NAMESPACE where that is set")
	flags.StringVar(&o.host, "bind-address", "", "Address that the webhook server listens on (default: all)")
	flags.IntVar(&o.port, "port", 9443, "Port that the webhook server listens on")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", "Address of /metrics; 0 for none")
	flags.StringVar(&o.healthAddress, "health-probe-bind-address", ":8081", "Address of /healthz and /readyz")
	flags.BoolVar(&o.leaderElect, "leader-elect", true, "Have one replica alone write what is kept in the cluster; false where only one runs")
	o.kube.add(flags)
	flags.DurationVar(&o.shutdownDelay, "shutdown-delay", 5*time.Second, "How long to go on serving after the signal to stop, not ready any more, until no API server sends requests here")
	o.tls.addFlags(cmd)
	logsapi.AddFlags(o.logging, flags)
	return cmd
}

func (o *serveOptions) run(ctx context.Context) error {
	log := klog.Background()
	ctrl.SetLogger(log)
	restConfig, err := o.kube.restConfig()
	if err != nil {
		return err
	}
	restConfig.QPS = -1 // the API server shares its time out by itself, and image sync may have hundreds of placeholders to write
	// As the cluster's own controllers: compressing each event of a watch takes more time on both sides than sending it.
	restConfig.DisableCompression = true
	restConfig.Wrap(live.Transport)
	if err := known("placement", []string{o.placement}, placements); err != nil {
		return err
	}
	o.certs.Mode, o.certs.PodsOptional = certs.Mode(o.certsMode), o.placement != placementWebhook
	certificates, err := certs.New(o.certs)
	if err != nil {
		return err
	}
	evaluators := &webhook.Evaluators{}
	reload := &reloads{evaluators: evaluators, log: log.WithName("config")}
	watcher, err := config.NewWatcher(o.configFile, policy.IDs(), reload.changed, reload.refused)
	if err != nil {
		return err
	}
	if err := evaluators.Configure(watcher.Current()); err != nil {
		return err
	}
	reload.placeholders = watcher.Current().Placeholders.Namespace
	reload.applied(watcher.Current())

	serverOptions := ctrlwebhook.Options{Host: o.host, Port: o.port}
	certificates.Configure(&serverOptions)
	probe := newServerProbe(o.host, cmp.Or(o.port, ctrlwebhook.DefaultPort))
	if err := o.tls.configure(&serverOptions, probe.name, log.WithName("callers")); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		WebhookServer:           newWebhookServer(serverOptions),
		Metrics:                 metricsserver.Options{BindAddress: "0"}, // see addMetricsServer
		HealthProbeBindAddress:  "0",                                     // see probes
		GracefulShutdownTimeout: new(drainTimeout),
		// Only what writes waits for its turn: admissions are answered and facts read by every replica.
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              "warmpool",
		LeaderElectionNamespace:       o.certs.Namespace,
		LeaderElectionReleaseOnCancel: true, // the process ends with the manager
		LeaseDuration:                 new(leaseDuration),
		RenewDeadline:                 new(renewDeadline),
		Cache: live.CacheOptions(o.certs.Namespace, watcher.Current().Placeholders.Namespace, func(d *appsv1.Deployment) bool {
			return policy.LooksLikePlaceholder(d, watcher.Current().Placeholders.PriorityClassName) || cluster.CPAOf(d) != nil ||
				policy.IsServer(d) || policy.MayHoldRoom(&d.Spec.Template.Spec) // which audits report
		}),
	})
	if err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	recorder := events.New(mgr)
	reload.recorder.Store(recorder)
	probes, err := newProbes(mgr, o.healthAddress, recorder)
	if err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	if err := errors.Join(addMetricsServer(mgr, o.metricsAddress), probes.AddReadyzCheck("webhook", probe.check)); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	return o.start(probes.stopAfter(ctx, o.shutdownDelay), probes, recorder, certificates, watcher, evaluators)
}

func (o *serveOptions) start(ctx context.Context, mgr *probes, recorder *events.Recorder, certificates *certs.Certs, watcher *config.Watcher, evaluators *webhook.Evaluators) error {
	log := mgr.GetLogger()
	facts, err := live.New(mgr, watcher.Current().Placeholders.Namespace)
	if err != nil {
		return err
	}
	facts.OnChange(func(snapshot *cluster.Snapshot) {
		if !facts.Synced() {
			return // judging by half the facts would deny for lack of data
		}
		if err := evaluators.Observe(snapshot); err != nil {
			log.Error(err, "new facts refused, the rules keep the ones before")
			return
		}
		snapshotTaken.SetToCurrentTime()
	})
	seen := lastseen.NewRecorder(mgr.GetClient(), o.certs.Namespace, log)
	evaluators.Seen = seen.Record
	images := imagesync.New(mgr, evaluators.Current, recorder)
	audits := audits.New(mgr, evaluators.Current, recorder, audits.Options{
		Webhooks: policy.PlaceholdersConfiguration, PodsWebhook: policy.PodsConfiguration, Configuration: client.ObjectKey{Namespace: o.certs.Namespace, Name: configMapName},
	})
	starts := starts.New(mgr, evaluators.Current, recorder)
	warm := warmlabels.New(mgr, evaluators.Current, starts.Occupancy())
	starts.Occupancy().OnChange(warm.Changed)
	sizes := scaling.New(mgr, scaling.Options{
		Source: evaluators.Current, Sizes: evaluators.Sizes, Events: recorder, Occupants: starts.Occupancy(), Namespace: o.certs.Namespace,
	})
	starts.Listen(sizes)
	evaluators.Changed = []func(){images.Changed, warm.Changed, audits.Changed, starts.Changed}
	if err := o.keepPlacement(mgr, evaluators); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	server := mgr.GetWebhookServer()
	for path, handler := range webhook.Handlers(evaluators.Current, serviceAccount(o.certs.Namespace), log.WithName("admission")) {
		server.Register(path, mgr.sendAway(handler))
	}
	err = errors.Join(
		certificates.SetupWithManager(mgr),
		metrics.Registry.Register(certificates),
		mgr.Add(facts),
		mgr.Add(watcher),
		mgr.Add(recorder),
		mgr.Add(seen),
		mgr.Add(audits),
		mgr.Add(starts),
		mgr.Add(sizes),
		images.SetupWithManager(mgr),
		warm.SetupWithManager(mgr),
		mgr.AddReadyzCheck("certificate", certificates.Ready),
		mgr.AddReadyzCheck("facts", func(*http.Request) error {
			if evaluators.Current() == nil {
				return errors.New("initial sync not complete: not all watched kinds have been listed")
			}
			return nil
		}),
	)
	if err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	return mgr.Start(ctx)
}
