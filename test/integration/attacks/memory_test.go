package attacks_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"warmpool.sh/test/harness/install"
	"warmpool.sh/webhook"
)

// hostile are parts of a pod's spec that decode to far more than their length, each with n values.
func hostile(n int) []string {
	entries := func(value string) string {
		return list(n, func(i int) string { return fmt.Sprintf("%q:%s", fmt.Sprint("k", i), value) })
	}
	elements := func(value string) string { return list(n, func(int) string { return value }) }
	const terms = `"containers":[{}],"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":`
	return []string{
		`"containers":[{"resources":{"limits":{` + entries("1") + `}}}]`,
		`"containers":[{}],"initContainers":[{"resources":{"limits":{` + entries("1") + `}}}]`,
		`"containers":[{}],"nodeSelector":{` + entries(`""`) + `}`,
		`"containers":[{}],"tolerations":[` + elements("{}") + `]`,
		`"containers":[` + elements("{}") + `]`,
		terms + `[` + elements("{}") + `]}}}`,
		terms + `[{"matchExpressions":[{"key":"a","operator":"In","values":[` + elements(`""`) + `]}]}]}}}`,
		`"containers":[{"args":[` + elements(`""`) + `]}]`,
	}
}

func list(n int, element func(int) string) string {
	elements := make([]string, n)
	for i := range elements {
		elements[i] = element(i)
	}
	return strings.Join(elements, ",")
}

// reviews are hostile reviews for the path.
func reviews(path string, n int) [][]byte {
	var all [][]byte
	for _, spec := range hostile(n) {
		text := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE",` +
			`"kind":{"group":"","version":"v1","kind":"Pod"},"object":{"metadata":{"labels":{"workspace.jupyter.org/workspace-name":"x"}},"spec":{` + spec + `}}}}`
		if path != webhook.PodsPath {
			text = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE",` +
				`"kind":{"group":"apps","version":"v1","kind":"Deployment"},"object":{"metadata":{"labels":{"app":"spaces-overprovisioning","warmpool.sh/pool":"cpu"}},` +
				`"spec":{"template":{"spec":{` + spec + `}}}}}}`
		}
		all = append(all, []byte(text))
	}
	return all
}

// Reviews that are small and decode to much, sent to the webhook port itself as fast as they are answered.
func TestHostileReviewsStayWithinTheMemoryLimit(t *testing.T) {
	c := newCluster(t)
	var callers sync.WaitGroup
	end := time.Now().Add(10 * time.Second)
	codes := map[int]int{}
	var mu sync.Mutex
	for _, path := range []string{webhook.PodsPath, webhook.MutatePlaceholdersPath, webhook.ValidatePlaceholdersPath} {
		url := fmt.Sprintf("https://127.0.0.1:%d%s", c.warmpool.WebhookPort, path)
		for _, n := range []int{900, 3000, 15_000, 365_000} {
			bodies := reviews(path, n)
			for range 6 {
				callers.Go(func() {
					client := caller()
					for i := 0; time.Now().Before(end); i++ {
						code := send(client, url, bodies[i%len(bodies)])
						mu.Lock()
						codes[code]++
						mu.Unlock()
					}
				})
			}
		}
	}
	callers.Wait()
	t.Log("answers by code: ", codes)
	require.NoError(t, install.Get(t.Context(), c.warmpool.HealthURL+"/healthz"), "the process has ended")
	assert.Positive(t, codes[http.StatusOK])
	c.assertPeak(t)
}

// assertPeak wants a fifth of the memory limit never to have been used, by memory that is resident. The cgroup alone leaves
// out pages of the program that another process has read from disk.
func (c *cluster) assertPeak(t *testing.T) {
	t.Helper()
	peak := c.resident(t)
	t.Logf("resident at most %d MiB, limit %d MiB", peak>>20, c.memoryLimit>>20)
	assert.Less(t, peak, c.memoryLimit*8/10)
}

// resident is the most memory that was resident at once, in bytes.
func (c *cluster) resident(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.warmpool.PID()))
	require.NoError(t, err, "the process has ended")
	for line := range strings.Lines(string(status)) {
		var kilobytes int64
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kilobytes); err == nil {
			return kilobytes << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// send gives the status code, or 0 where there was no answer.
func send(client *http.Client, url string, body []byte) int {
	response, err := client.Post(url, "application/json", bytes.NewReader(body)) //nolint:noctx // the client has a time limit
	if err != nil {
		return 0
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// A tenant creates pods of 3 MB that are all resource names, while others create ordinary ones.
func TestTenantsCreateHostilePods(t *testing.T) {
	c := newCluster(t)
	stop := c.create(t)
	limits := corev1.ResourceList{}
	for i := range 8_000 {
		limits[corev1.ResourceName(fmt.Sprintf("example.com/%d", i))] = resource.MustParse("1")
	}
	var tenants sync.WaitGroup
	end := time.Now().Add(10 * time.Second)
	for i := range 6 {
		tenants.Go(func() {
			for j := 0; time.Now().Before(end); j++ {
				pod := workspace(fmt.Sprintf("hostile-%d-%d", i, j))
				pod.Spec.Containers[0].Resources.Limits = limits
				_ = c.admin.Create(t.Context(), pod) // whatever becomes of it
			}
		})
	}
	tenants.Wait()
	c.withstood(t, "6 tenants create pods of 8,000 resources, one after the other", stop)
}
