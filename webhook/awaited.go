package webhook

import (
	"net/http"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"warmpool.sh/webhook/placement"
	"warmpool.sh/webhook/policy"
)

// awaitedSeconds is when a client is to ask again for a placeholder of a pool that is to come. Clients try ten times, and the
// kubelet takes a minute or so to bring a configuration.
const awaitedSeconds = 10

// awaited tells that a placeholder came with a configuration that has its pool, and that has not arrived here: a Helm release
// has both, and names its pools in one place. Whoever writes a placeholder by hand may have mistyped the pool.
func awaited(e *policy.Evaluator, d *appsv1.Deployment) bool {
	pool, labelled := d.Labels[placement.PoolLabel]
	return labelled && d.Labels["app.kubernetes.io/managed-by"] == "Helm" && e.Pools().Get(pool) == nil
}

// tryAgain makes a denial one after which clients ask again by themselves.
func tryAgain(denial *metav1.Status) {
	denial.Code, denial.Reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
	denial.Message = "the configuration that this release brings has not been read yet; it takes a minute or so. Until then: " + denial.Message
	if denial.Details == nil {
		denial.Details = &metav1.StatusDetails{}
	}
	denial.Details.RetryAfterSeconds = awaitedSeconds
}
