package main

import (
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"warmpool.sh/webhook"
	"warmpool.sh/webhook/controller/policysync"
)

// Who places the pods of Workspaces.
const (
	placementWebhook = "webhook"
	placementCEL     = "cel"
	placementNone    = "none"
)

var placements = []string{placementWebhook, placementCEL, placementNone}

// keepPlacement has the leader keep the policy that places pods, where one does.
func (o *serveOptions) keepPlacement(mgr *probes, evaluators *webhook.Evaluators) error {
	if o.placement != placementCEL {
		return nil
	}
	keeper, err := policysync.New(mgr, evaluators.Current, o.certs.Namespace)
	if err != nil {
		return err
	}
	evaluators.Changed = append(evaluators.Changed, keeper.Changed)
	return errors.Join(mgr.Add(keeper), mgr.AddReadyzCheck("placement", keeper.Ready), metrics.Registry.Register(keeper))
}
