package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/webhook/audit"
	"warmpool.sh/webhook/cluster"
	"warmpool.sh/webhook/cluster/lastseen"
	"warmpool.sh/webhook/cluster/live"
	"warmpool.sh/webhook/cluster/manifest"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/demand"
	"warmpool.sh/webhook/policy"
)

// audited is what an audit judges and what is to be said about it.
type audited struct {
	config *config.WarmPoolConfiguration
	facts  *cluster.Snapshot
	notes  []string
	// origin says where the configuration is from; inferred, that there is none.
	origin   string
	inferred bool
	// unreadable are the kinds that this user may not read, broken the objects that no one can, refused the files that were
	// named and cannot be read.
	unreadable      []string
	broken, refused error
	// idle tells that there is nothing to judge.
	idle bool
	// place is where an object's field stands; nil in a live cluster, and where no places are printed.
	place func(policy.Ref, string) audit.Place
}

// readAudited reads the manifests or the live cluster; the error says that nothing could be audited.
func (o *auditOptions) readAudited(cmd *cobra.Command) (*audited, error) {
	if len(o.files) > 0 {
		return o.readManifests(cmd)
	}
	return o.readCluster(cmd.Context())
}

func (o *auditOptions) readManifests(cmd *cobra.Command) (*audited, error) {
	reading := o.manifests.load(o.files, cmd.InOrStdin(), !o.complete)
	facts, objects := reading.Snapshot, reading.Objects
	if err := reading.Err(); err != nil && len(objects) == 0 {
		return nil, err
	}
	found := &audited{facts: facts, broken: errors.Join(reading.Broken...), refused: errors.Join(reading.Refused...), notes: reading.Notes}
	if err := addLastSeen(facts, objects); err != nil {
		found.broken = errors.Join(found.broken, err)
	}
	if o.output != "json" && o.output != "yaml" { // these print no places, which take a second parser
		found.place = placesOf(objects, o.stdinName)
	}
	return found, o.configure(found, func() ([]byte, error) { return configIn(objects) })
}

// placesOf finds the places of objects by what rules call them. stdinName, where given, is the file that stands for standard
// input: lines of what was rendered into it are none of that file, so that there is no line.
func placesOf(objects []manifest.Object, stdinName string) func(policy.Ref, string) audit.Place {
	byRef := map[policy.Ref]manifest.Object{}
	for _, object := range objects {
		ref := policy.Ref{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
		if _, taken := byRef[ref]; !taken {
			byRef[ref] = object
		}
		for ref.Definition = 1; ; ref.Definition++ {
			if _, taken := byRef[ref]; !taken {
				byRef[ref] = object
				break
			}
		}
	}
	return func(ref policy.Ref, field string) audit.Place {
		object, ok := byRef[ref]
		if !ok {
			return audit.Place{}
		}
		if stdinName != "" && object.File == manifest.StandardInput {
			return audit.Place{File: stdinName}
		}
		return audit.Place{File: object.File, Line: object.Line(field)}
	}
}

func (o *auditOptions) readCluster(ctx context.Context) (*audited, error) {
	restConfig, err := o.kube.restConfig()
	if err != nil {
		return nil, fmt.Errorf("find a cluster (or give -f PATH): %w", err)
	}
	p := newProgress("Reading")
	defer p.done()
	reading, err := live.NewReading(restConfig, p.next)
	if err != nil {
		return nil, fmt.Errorf("%w (to audit manifests, give -f PATH)", err)
	}
	client, err := corev1client.NewForConfig(restConfig)
	if err != nil {
		return nil, err
	}
	facts := reading.Snapshot(ctx, func(*appsv1.Deployment) bool { return true })
	facts.LastSeen = lastseen.Read(ctx, client, ownNamespace)
	found := &audited{facts: facts}
	err = o.configure(found, func() ([]byte, error) {
		configMap, err := client.ConfigMaps(ownNamespace).Get(ctx, configMapName, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil
		case apierrors.IsForbidden(err):
			found.notes = append(found.notes, fmt.Sprintf("this user may not get the ConfigMap %s/%s, which may hold the configuration", ownNamespace, configMapName))
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("read the configuration (or give --config FILE): %w", err)
		}
		return []byte(configMap.Data[configMapKey]), nil
	})
	if err != nil {
		return nil, withReasons(err, reading.Unreadable())
	}
	if err := readAround(ctx, reading, found); err != nil {
		return nil, err
	}
	found.unreadable = reading.Unreadable()
	if !facts.Deployments.Known() && !facts.Pods.Known() && !facts.NodePools.Known() {
		return nil, withReasons(errors.New("nothing could be audited"), found.unreadable)
	}
	return found, nil
}

func withReasons(err error, reasons []string) error {
	if len(reasons) == 0 {
		return err
	}
	return fmt.Errorf("%w: %s", err, strings.Join(reasons, "; "))
}

// readAround adds what only audits look at.
func readAround(ctx context.Context, reading *live.Reading, found *audited) error {
	selector, err := metav1.LabelSelectorAsSelector(found.config.Workspaces.Selector)
	if err != nil {
		return fmt.Errorf("workspaces.selector: %w", err)
	}
	evaluator, err := policy.New(found.config, found.facts, time.Now())
	if err != nil {
		return err
	}
	scope := live.Scope{
		Workspaces: selector, Placeholders: found.config.Placeholders.Namespace, IsPlaceholder: evaluator.IsPlaceholder,
		Webhooks: policy.PlaceholdersConfiguration, PodsWebhook: policy.PodsConfiguration,
	}
	if found.config.SizesPools() {
		scope.Demand = client.ObjectKey{Namespace: ownNamespace, Name: demand.ConfigMapName}
	}
	found.facts.Around = reading.Around(ctx, found.facts, scope)
	return nil
}

// configure loads the configuration that is given or held by the cluster, else infers one.
func (o *auditOptions) configure(found *audited, held func() ([]byte, error)) error {
	var data []byte
	var err error
	if o.configFile == "" {
		data, err = held()
	}
	if err != nil {
		return err
	}
	if o.configFile != "" || len(data) > 0 {
		found.origin = cmp.Or(o.configFile, "the one that the cluster or its manifests hold")
		found.config, err = o.configFrom(func() ([]byte, error) { return data, nil })
		return err
	}
	inferred, notes := audit.Infer(found.facts)
	if len(inferred.Pools) == 0 && len(o.files) > 0 {
		found.idle = len(notes) == 0
		found.notes = append(found.notes, "nothing is configured, and no pool can be inferred: no configuration, and no placeholder Deployment that names its nodes (label warmpool.sh/pool, or pods of PriorityClass "+inferred.Placeholders.PriorityClassName+"): "+whereToFindConfig)
	} else if len(inferred.Pools) == 0 && !o.unconfigured {
		err := fmt.Errorf("nothing to audit: no configuration, and no placeholder Deployment from which pools could be inferred (label warmpool.sh/pool, or pods of PriorityClass %s): %s",
			inferred.Placeholders.PriorityClassName, whereToFindConfig)
		for _, note := range notes {
			err = fmt.Errorf("%w; %s", err, note)
		}
		return errors.Join(found.broken, err)
	}
	found.inferred = true
	found.config, found.origin = inferred, "none; pools were inferred"
	found.notes = append(found.notes, notes...)
	return nil
}

// progress tells on a terminal what is done, once that takes more than two seconds.
type progress struct {
	doing string
	now   chan string
	ended chan struct{}
}

func newProgress(doing string) *progress {
	p := &progress{doing: doing, now: make(chan string), ended: make(chan struct{})}
	go p.show(term.IsTerminal(int(os.Stderr.Fd())))
	return p
}

func (p *progress) show(visible bool) {
	defer close(p.ended)
	what, shown := "", false
	late := time.After(2 * time.Second)
	for {
		select {
		case next, more := <-p.now:
			if !more {
				if shown {
					_, _ = fmt.Fprint(os.Stderr, "\r\x1b[K")
				}
				return
			}
			what = next
		case <-late:
			late, shown = nil, visible
		}
		if shown {
			_, _ = fmt.Fprintf(os.Stderr, "\r\x1b[K%s %s", p.doing, what)
		}
	}
}

func (p *progress) next(what string) { p.now <- what }

// done ends the line, so that nothing is left of it when the report is printed.
func (p *progress) done() {
	close(p.now)
	<-p.ended
}
