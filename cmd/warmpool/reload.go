package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"warmpool.sh/webhook"
	"warmpool.sh/webhook/config"
	"warmpool.sh/webhook/events"
)

// reloads puts new configurations in force and makes refused ones known.
type reloads struct {
	evaluators *webhook.Evaluators
	log        logr.Logger
	// placeholders is the namespace of the placeholders since the start.
	placeholders string
	// recorder is there once the manager is.
	recorder atomic.Pointer[events.Recorder]
}

func (r *reloads) changed(cfg *config.WarmPoolConfiguration) {
	// The rights and the watch on placeholder pods are those of one namespace.
	if was := r.placeholders; was != "" && cfg.Placeholders.Namespace != was {
		r.refused(fmt.Errorf("placeholders.namespace: %q: it was %q when warmpool started; restart it, with its Role in the new namespace", cfg.Placeholders.Namespace, was))
		return
	}
	if err := r.evaluators.Configure(cfg); err != nil {
		r.refused(err)
		return
	}
	r.applied(cfg)
}

func (r *reloads) applied(cfg *config.WarmPoolConfiguration) {
	configReloads.WithLabelValues("applied").Inc()
	configSuccessful.Set(1)
	configApplied.SetToCurrentTime()
	r.log.Info("configuration in force", "pools", len(cfg.Pools))
	for _, exemption := range cfg.Expired(time.Now()) {
		r.log.Info("exemption has ended and no longer applies", "namespace", exemption.Namespace, "name", exemption.Name, "until", exemption.Until)
	}
}

// refused tells log, metric and, in a cluster, the Events of warmpool's own pod.
func (r *reloads) refused(err error) {
	configReloads.WithLabelValues("refused").Inc()
	configSuccessful.Set(0)
	r.log.Error(err, "new configuration refused, the old one stays in force")
	recorder, pod := r.recorder.Load(), ownPod()
	if recorder != nil && pod != nil {
		recorder.Eventf(pod, nil, corev1.EventTypeWarning, "ConfigurationRefused", "Reload", "the old configuration stays in force: %.900v", err)
	}
}

// ownPod is nil outside a cluster.
func ownPod() *corev1.ObjectReference {
	name, namespace := os.Getenv("POD_NAME"), os.Getenv("POD_NAMESPACE")
	if name == "" || namespace == "" {
		return nil
	}
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: name}
}

// serviceAccount is the user that warmpool is to the API server: the manifests name its ServiceAccount.
func serviceAccount(namespace string) string {
	return "system:serviceaccount:" + namespace + ":warmpool"
}
