package imagesync_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"warmpool.sh/test/harness/await"
)

// refusing is a policy of somebody else: no image of this registry in the placeholder called refused.
const refusing = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: refusing}
spec:
  failurePolicy: Fail
  matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [UPDATE], resources: [deployments]}]}
  matchConditions: [{name: this, expression: object.metadata.name == 'refused'}]
  validations: [{expression: "!object.spec.template.spec.initContainers.exists(c, c.image.startsWith('untrusted.example/'))", message: untrusted registry}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: refusing}
spec: {policyName: refusing, validationActions: [Deny]}
`

// A policy that refuses the image is not asked again and again; another image of the template goes on.
func TestImageThatAPolicyRefuses(t *testing.T) {
	t.Parallel()
	c := shared
	c.start(t, "refused", first)
	require.Equal(t, 1, c.rollouts(t, "refused"))
	c.apply(t, refusing)
	patch := client.RawPatch("application/json-patch+json", []byte(`[{"op": "replace", "path": "/spec/template/spec/initContainers/0/image", "value": "untrusted.example/try:1"}]`))
	await.NoProblem(t, limit, "the policy is in force", func() string {
		// Beside warmpool, which would keep the image.
		d := c.deployment(t, "refused")
		d.Labels[unseen] = "yes"
		require.NoError(t, c.admin.Update(t.Context(), d))
		if err := c.admin.Patch(t.Context(), d, patch, client.DryRunAll); err == nil {
			return "it takes the image"
		}
		return ""
	})
	c.wrote(t, "refused", 1)
	c.setImage(t, "refused", "untrusted.example/notebook:1")
	for kind, name := range map[string]string{"Deployment": "refused", "WorkspaceTemplate": "refused"} {
		event := c.told(t, kind, name, "ImageSyncBlocked", "the API server refuses the images of Deployment overprovisioning/refused: ", "untrusted registry")
		t.Log(event.Note)
	}
	c.passed(t, "refused")
	c.wrote(t, "refused", 2)
	assert.EqualValues(t, 1, c.metric(t, "warmpool_image_sync_total", `pool="refused",result="refused"`))
	assert.EqualValues(t, 0, c.metric(t, "warmpool_image_in_sync", `pool="refused"`))
	c.setImage(t, "refused", second)
	c.synced(t, "refused", second)
	c.wrote(t, "refused", 3)
	assert.Equal(t, 2, c.rollouts(t, "refused"))
}
