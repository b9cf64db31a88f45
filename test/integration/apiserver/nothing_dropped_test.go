package apiserver_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// richSpec has a good part of all that a pod can have.
const richSpec = `
activeDeadlineSeconds: 86400
automountServiceAccountToken: false
dnsPolicy: None
dnsConfig: {nameservers: [10.0.0.10], searches: [svc.cluster.local], options: [{name: ndots, value: "2"}]}
enableServiceLinks: false
hostname: notebook
subdomain: notebooks
hostAliases: [{ip: 10.1.2.3, hostnames: [a.example.com, b.example.com]}]
imagePullSecrets: [{name: registry}]
nodeSelector: {kubernetes.io/os: linux}
os: {name: linux}
readinessGates: [{conditionType: example.com/ready}]
resourceClaims: [{name: device, resourceClaimTemplateName: device}]
schedulerName: another
serviceAccountName: notebook
setHostnameAsFQDN: true
shareProcessNamespace: true
terminationGracePeriodSeconds: 45
securityContext: {runAsNonRoot: true, runAsUser: 1000, fsGroup: 100, fsGroupChangePolicy: OnRootMismatch, supplementalGroups: [4], sysctls: [{name: net.ipv4.tcp_syncookies, value: "1"}]}
affinity:
  nodeAffinity:
    preferredDuringSchedulingIgnoredDuringExecution: [{weight: 7, preference: {matchFields: [{key: metadata.name, operator: In, values: [n1]}]}}]
  podAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
    - {weight: 3, podAffinityTerm: {topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: store}}, namespaceSelector: {matchLabels: {team: a}}}}
  podAntiAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
    - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: ph}}, mismatchLabelKeys: [other]}
tolerations: [{key: example.com/mine, operator: Exists, effect: NoExecute, tolerationSeconds: 7}]
topologySpreadConstraints:
- {maxSkew: 2, minDomains: 2, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: jupyter}}, nodeAffinityPolicy: Honor, nodeTaintsPolicy: Ignore}
volumes:
- {name: home, persistentVolumeClaim: {claimName: home, readOnly: true}}
- {name: scratch, emptyDir: {medium: Memory, sizeLimit: 1Gi}}
- {name: config, configMap: {name: config, optional: true, defaultMode: 292, items: [{key: a, path: b, mode: 256}]}}
- {name: secret, secret: {secretName: secret}}
- {name: bucket, csi: {driver: s3.csi.aws.com, readOnly: true, volumeAttributes: {bucketName: data}}}
- {name: claim, ephemeral: {volumeClaimTemplate: {metadata: {labels: {a: b}}, spec: {accessModes: [ReadWriteOnce], storageClassName: gp3, resources: {requests: {storage: 1Gi}}}}}}
- {name: model, image: {reference: "example.com/model:1", pullPolicy: IfNotPresent}}
- {name: host, hostPath: {path: /mnt, type: Directory}}
- {name: share, nfs: {server: 10.0.0.1, path: /, readOnly: true}}
- name: projected
  projected:
    sources:
    - serviceAccountToken: {audience: vault, expirationSeconds: 3600, path: token}
    - downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}, {path: cpu, resourceFieldRef: {containerName: workspace, resource: limits.cpu, divisor: 1m}}]}
    - secret: {name: other, items: [{key: k, path: p}]}
initContainers:
- {name: first, image: "example.com/first:1", command: [sh], args: [-c, "true"]}
- name: sidecar
  image: example.com/sidecar:1
  restartPolicy: Always
  startupProbe: {exec: {command: ["true"]}, failureThreshold: 30}
- {name: pull-workspace-image, image: "example.com/notebook:1", command: ["true"]}
containers:
- name: workspace
  image: example.com/notebook@sha256:0000000000000000000000000000000000000000000000000000000000000001
  imagePullPolicy: Always
  command: [jupyter]
  args: [lab, --ip=0.0.0.0]
  workingDir: /home
  stdin: true
  tty: true
  ports: [{name: http, containerPort: 8888, protocol: TCP}, {name: dns, containerPort: 53, protocol: UDP}]
  envFrom: [{prefix: P_, configMapRef: {name: env, optional: true}}]
  env:
  - {name: A, value: "$(B) / ~ \" ü 漢"}
  - {name: B, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
  - {name: C, valueFrom: {secretKeyRef: {name: s, key: k, optional: true}}}
  - {name: D, valueFrom: {resourceFieldRef: {resource: requests.memory, divisor: 1Mi}}}
  resources:
    claims: [{name: device, request: gpu}]
    requests: {cpu: 1500m, memory: 1.5Gi, ephemeral-storage: 1e9, nvidia.com/gpu: 1}
    limits: {cpu: "1.5", memory: 1536Mi, ephemeral-storage: 1G, nvidia.com/gpu: 1}
  resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}, {resourceName: memory, restartPolicy: RestartContainer}]
  livenessProbe: {httpGet: {path: /live, port: http, scheme: HTTPS, httpHeaders: [{name: X-Probe, value: "yes"}]}, periodSeconds: 7, terminationGracePeriodSeconds: 3}
  readinessProbe: {tcpSocket: {port: 8888}, initialDelaySeconds: 3, successThreshold: 2}
  startupProbe: {grpc: {port: 9000, service: health}, timeoutSeconds: 5}
  lifecycle: {postStart: {exec: {command: [sh, -c, "echo hi"]}}}
  securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}, procMount: Default, seccompProfile: {type: Localhost, localhostProfile: a/b.json}}
  volumeDevices: [{name: home, devicePath: /dev/xvda}]
  volumeMounts:
  - {name: scratch, mountPath: /scratch, subPathExpr: "$(B)", mountPropagation: HostToContainer}
  - {name: config, mountPath: /config, readOnly: true, recursiveReadOnly: IfPossible}
`

func richPod(t *testing.T) *corev1.Pod {
	t.Helper()
	pod := workspacePod("gpu-a")
	pod.Spec = fromYAML[corev1.PodSpec](t, richSpec)
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
	pod.Annotations = map[string]string{"example.com/a.b_c": "x/y~z\n", "short": ""}
	pod.Finalizers = []string{"example.com/keep"}
	return pod
}

// A patch touches what it means to touch, and nothing else: not what API server and warmpool know, and how it is written.
func TestNothingIsDropped(t *testing.T) {
	u := newUser(t)
	t.Run("pod", func(t *testing.T) {
		o := u.create(t, u.namespace(t), richPod(t))
		want := fromYAML[corev1.NodeSelector](t, `{nodeSelectorTerms: [{matchExpressions: [`+gpuA+`]}]}`)
		o.spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &want
		o.spec.Tolerations = append(o.spec.Tolerations, tolerations(t, gpuExists+`, {key: dedicated, operator: Equal, value: notebooks, effect: NoSchedule}`)...)
		o.same(t)
		assert.Equal(t, []string{"workspace-claims: Karpenter starts no node of pool gpu-a for a pod with resourceClaims"}, o.warnings)
		require.Len(t, o.got.GetManagedFields(), 1)
		assert.Contains(t, o.got.GetManagedFields()[0].FieldsV1.GetRawString(), "f:tolerations")
	})
	t.Run("placeholder", func(t *testing.T) {
		d := complete(t)
		seconds, revisions := int32(33), int32(4)
		d.Spec.MinReadySeconds, d.Spec.RevisionHistoryLimit, d.Spec.Paused = seconds, &revisions, true
		d.Annotations = map[string]string{"example.com/a": "x/y~z"}
		class := d.Spec.Template.Spec.PriorityClassName
		d.Spec.Template.Spec = fromYAML[corev1.PodSpec](t, richSpec)
		d.Spec.Template.Spec.PriorityClassName = class
		d.Spec.Template.Spec.Volumes = slices.DeleteFunc(d.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool { return v.HostPath != nil }) // is denied
		d.Spec.Template.Spec.ActiveDeadlineSeconds = nil                                                                                        // not for pods of a Deployment
		o := u.create(t, u.namespace(t), d)
		want, ok := o.want.(*appsv1.Deployment)
		require.True(t, ok)
		required := fromYAML[corev1.NodeSelector](t, `{nodeSelectorTerms: [{matchExpressions: [`+gpuA+`]}]}`)
		want.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &required
		want.Spec.Template.Spec.Tolerations = append(want.Spec.Template.Spec.Tolerations, tolerations(t, gpuExists+`, {key: dedicated, operator: Equal, value: notebooks, effect: NoSchedule}`)...)
		o.same(t)
		warned(t, o.warnings, "placeholder-tolerations-excess: …example.com/mine", "placeholder-grace-period: …45", "placeholder-privileges: …share")
	})
}
