package controlplane

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

var kubectlArtifact = artifact{name: kubectl, module: kubernetes, main: "cmd/kubectl", minutes: 1, envtest: true}

// Ready says what Start, with these options, and Kubectl would have to build first, or nil. It builds nothing.
func Ready(ctx context.Context, opts Options) error {
	return ready(ctx, clusterComponents, append(artifacts(opts.complete()), kubectlArtifact))
}

// NodesReady is Ready for StartNodes.
func NodesReady(ctx context.Context) error {
	if err := ready(ctx, clusterComponents, []artifact{kubeletArtifact}); err != nil {
		return err
	}
	return ready(ctx, nodeComponents, nodeArtifacts)
}

func ready(ctx context.Context, from components, list []artifact) error {
	s, err := findStore(ctx, from, nil)
	if err != nil {
		return err
	}
	var missing []string
	for _, a := range list {
		if _, ok := s.find(a); !ok {
			missing = append(missing, a.name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("not there yet: %s; make test gets them, which may take many minutes the first time", strings.Join(missing, ", "))
	}
	return nil
}

// PrepareAll gets every program that tests need on this machine. Log receives a line for each step, and how far a build is.
func PrepareAll(ctx context.Context, log io.Writer) error {
	opts := Options{ControllerManager: true, Scheduler: true, Karpenter: true}.complete()
	list := artifacts(opts)
	opts.NodesOnly = true // has KWOK behave in another way, by another file
	for _, a := range append(artifacts(opts), kubectlArtifact) {
		if !slices.ContainsFunc(list, func(other artifact) bool { return other.name == a.name }) {
			list = append(list, a)
		}
	}
	if _, err := locateIn(ctx, clusterComponents, log, list); err != nil || RealNodes() != nil {
		return err
	}
	_, err := locateNodes(ctx, log)
	return err
}
