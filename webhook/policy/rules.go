package policy

import (
	"slices"

	"warmpool.sh/webhook/config"
)

// table is every rule, in the order of findings and of the documentation.
var table = completed(
	placeholderSize,
	placeholderAntiAffinity,
	placeholderPool,
	placeholderTolerations,
	placeholderTolerationsExcess,
	placeholderPriority,
	placeholderGracePeriod,
	placeholderDoNotDisrupt,
	placeholderRollout,
	placeholderAccelerator,
	placeholderQOS,
	placeholderImage,
	placeholderImageTag,
	placeholderPullPolicy,
	placeholderPullCommand,
	placeholderPullRequest,
	placeholderPullSecrets,
	placeholderSizingMode,
	placeholderReplicas,
	placeholderZones,
	placeholderNamespace,
	placeholderPrivileges,
	placeholderElsewhere,
	placeholderBudget,
	placeholderPods,
	placeholderStuck,
	placeholderNotJudged,

	workspacePoolAffinity,
	workspaceTolerations,
	workspaceWarmFirst,
	workspacePoolConflict,
	workspaceNoPool,
	workspaceSize,
	workspacePriority,
	workspaceImage,
	workspaceClaims,
	workspaceQueue,

	priorityClassPlaceholder,
	nodePoolReady,
	nodePoolLabel,
	nodePoolConsolidation,
	nodePoolLimits,
	nodePoolTaints,
	nodePoolExpiry,
	nodePoolCapacityType,
	nodePoolDoubleBuffer,
	daemonSetTooLarge,
	cpaConfig,
	cpaBounds,
	cpaRunaway,
	cpaScope,
	cpaTarget,
	cpaRBAC,
	cpaPriority,
	templatePool,
	templatePoolConflict,
	templateImageTag,
	templateIdleShutdown,
	poolPlaceholder,
	poolSize,
	poolTwoScalers,
	warmCount,
	nodeTaints,
	nodeDiskPressure,
	webhookScope,
	webhookTarget,
	webhookNodes,
	clusterAutoscalerCutoff,
)

// completed marks the rules without an action as those for audits only.
func completed(rules ...*Rule) []*Rule {
	for _, rule := range rules {
		if rule.Action == "" {
			rule.Action, rule.AuditOnly = config.Audit, true
		}
	}
	return rules
}

// The rules about one object at a time, by their indices in the table: so that admission passes over no others.
var placeholderRules, workspaceRules = indices(PlaceholderDeployment), indices(WorkspacePod)

func indices(subject Subject) []int {
	var found []int
	for i, rule := range table {
		if rule.Subject == subject {
			found = append(found, i)
		}
	}
	return found
}

// Rules are all rules in the order of the table.
func Rules() []*Rule { return slices.Clone(table) }

// IDs are the ids of all rules in the order of the table.
func IDs() []string {
	ids := make([]string, len(table))
	for i, rule := range table {
		ids[i] = rule.ID
	}
	return ids
}
