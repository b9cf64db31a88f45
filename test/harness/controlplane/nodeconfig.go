package controlplane

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
)

const (
	apiPort      = 6443
	registryPort = 5000
	pauseImage   = "registry.k8s.io/pause:test"
)

// containerdConfig takes the node's folder, the image of sandboxes, the folder of
// the CNI programs, and the path of runc. A process that may not lower its
// oom_score_adj may not set it for others either, hence the restriction.
const containerdConfig = `version = 3
[plugins.'io.containerd.internal.v1.opt']
  path = "/var/lib/containerd/opt"
[plugins.'io.containerd.nri.v1.nri']
  disable = true
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = %[2]q
[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = "%[1]s/registries"
[plugins.'io.containerd.cri.v1.runtime']
  disable_apparmor = true
  restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = [%[3]q]
  conf_dir = "%[1]s/cni"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  BinaryName = %[4]q
`

const cniConfig = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [{
  "type": "bridge", "bridge": "pods", "isGateway": true,
  "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.98.%d.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}
}]}
`

// registryConfig sends the pulls from every registry to the one of the test.
const registryConfig = `server = "http://%[1]s:%[2]d"
[host."http://%[1]s:%[2]d"]
  capabilities = ["pull", "resolve"]
`

// writeConfig writes what containerd and kubelet read into the node's folder.
func (n *Node) writeConfig(keys keys, paths map[string]string, runcPath string) error {
	kubeletYAML, err := yaml.Marshal(n.kubeletConfig())
	if err != nil {
		return fmt.Errorf("write the kubelet's configuration: %w", err)
	}
	for name, data := range map[string]string{
		"containerd.toml":                fmt.Sprintf(containerdConfig, n.dir, pauseImage, filepath.Dir(paths[containerd]), runcPath),
		"registries/_default/hosts.toml": fmt.Sprintf(registryConfig, hubAddress, registryPort),
		"cni/10-pods.conflist":           fmt.Sprintf(cniConfig, n.index),
		"kubelet.yaml":                   string(kubeletYAML),
	} {
		path := filepath.Join(n.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write the node's configuration: %w", err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			return fmt.Errorf("write the node's configuration: %w", err)
		}
	}
	return n.writeKubeconfig(keys)
}

func (n *Node) kubeletConfig() map[string]any {
	enforced := []string{"pods"}
	if n.spec.CPUs != 0 {
		enforced = []string{"none"} // CPUs that are not there cannot be in a cpuset
	}
	return map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"failCgroupV1": false, "cgroupDriver": "cgroupfs",
		"cgroupsPerQOS": n.spec.CPUs == 0, "enforceNodeAllocatable": enforced,
		"containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
		"address":                  n.IP, "readOnlyPort": 0,
		// Only the network of the nodes leads there.
		"authentication":                map[string]any{"anonymous": map[string]any{"enabled": true}, "webhook": map[string]any{"enabled": false}},
		"authorization":                 map[string]any{"mode": "AlwaysAllow"},
		"makeIPTablesUtilChains":        false,
		"failSwapOn":                    false,
		"enableControllerAttachDetach":  false,
		"serializeImagePulls":           false,
		"volumePluginDir":               "/var/lib/kubelet/volume-plugins",
		"registerWithTaints":            n.spec.Taints,
		"nodeStatusUpdateFrequency":     "5s",
		"nodeStatusReportFrequency":     "10s",
		"nodeLeaseDurationSeconds":      20,
		"imageGCHighThresholdPercent":   100, // a full disk is the machine's, not the test's, concern
		"evictionHard":                  map[string]string{"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%", "nodefs.inodesFree": "1%"},
		"shutdownGracePeriod":           "0s",
		"clusterDNS":                    []string{"10.0.0.10"},
		"clusterDomain":                 "cluster.local",
		"localStorageCapacityIsolation": true,
	}
}

// writeKubeconfig names the node by a client certificate, which needs no entry in a
// file that the API server reads at its start alone.
func (n *Node) writeKubeconfig(keys keys) error {
	certificate, key, err := keys.newClientCert("system:node:"+n.Name, "system:nodes")
	if err != nil {
		return fmt.Errorf("make the node's client certificate: %w", err)
	}
	const name = "node"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server:        fmt.Sprintf("https://%s:%d", hubAddress, apiPort),
		TLSServerName: "localhost", CertificateAuthorityData: keys.ca,
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	if err := clientcmd.WriteToFile(*config, filepath.Join(n.dir, "kubeconfig")); err != nil {
		return fmt.Errorf("write the node's kubeconfig: %w", err)
	}
	return nil
}
