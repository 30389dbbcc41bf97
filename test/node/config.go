//go:build linux

package node

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tideline-io/tideline/test/node/inside"
)

// The network of pods, which nobody else sees.
const (
	bridge       = "pods"
	subnet       = "10.244.0.0/24"
	gateway      = "10.244.0.1"
	bridgeMAC    = "0a:58:0a:f4:00:01"
	kubernetesIP = "10.96.0.1" // the first of the API server's --service-cluster-ip-range
	pauseImage   = "tideline.local/pause:1"
)

// What the programs are called in the node.
const (
	kubelet    = "kubelet"
	containerd = "containerd"
)

// containerdConfig is containerd's. It has no AppArmor here, and may be without CAP_SYS_RESOURCE.
const containerdConfig = `version = 2
root = "%[1]s/containerd"
state = "%[1]s/containerd-state"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.opt"]
[grpc]
  address = "%[2]s"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "` + pauseImage + `"
  disable_apparmor = true
  restrict_oom_score_adj = true
  tolerate_missing_hugetlb_controller = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "` + pluginFolder + `"
    conf_dir = "%[1]s/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
`

const cniConfig = `{"cniVersion": "0.4.0", "name": "pods", "plugins": [{
  "type": "bridge", "bridge": "` + bridge + `", "isGateway": true, "ipMasq": false,
  "ipam": {"type": "host-local", "dataDir": "%s/addresses",
    "ranges": [[{"subnet": "` + subnet + `", "gateway": "` + gateway + `"}]], "routes": [{"dst": "0.0.0.0/0"}]}
}]}
`

const corefile = `cluster.local:53 {
  bind ` + gateway + `
  errors
  kubernetes cluster.local {
    kubeconfig %s
  }
}
.:53 {
  bind ` + gateway + `
  errors
  template IN ANY {
    rcode NXDOMAIN
  }
}
`

// kubeletConfig is kubelet's. It answers only clients with a certificate of the cluster's authority, because it runs programs as
// root and is reached from outside of the node's namespaces, too. The kernel may have the first version of cgroups alone, and
// swap; no disk is so full that it matters.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: %[4]q}}
authorization: {mode: AlwaysAllow}
port: %[5]d
readOnlyPort: 0
cgroupDriver: cgroupfs
cgroupRoot: /%[3]s
failCgroupV1: false
failSwapOn: false
clusterDomain: cluster.local
clusterDNS: [` + gateway + `]
containerRuntimeEndpoint: unix://%[2]s
localStorageCapacityIsolation: false
makeIPTablesUtilChains: false
oomScoreAdj: 0
podLogsDir: %[1]s/pods
volumePluginDir: %[1]s/volume-plugins
resolvConf: %[1]s/resolv.conf
evictionHard: {memory.available: 100Mi, nodefs.available: 1%%, imagefs.available: 1%%}
imageGCHighThresholdPercent: 100
`

// programs are those that are built, and the port on which the kubelet listens, inside and relayed from outside.
type programs struct {
	kubelet, coredns string
	kubeletPort      int
}

// configure writes what the programs of the node read, and returns the file for process 1. authority is the certificate of the
// cluster's authority, in PEM.
func (n *Node) configure(p programs, apiServer, kubeconfig string, authority []byte) (string, error) {
	in := func(name string) string { return filepath.Join(n.folder, name) }
	for name, content := range map[string]string{
		"containerd.toml":   fmt.Sprintf(containerdConfig, n.folder, n.socket(containerd)),
		"cni/pods.conflist": fmt.Sprintf(cniConfig, n.folder),
		"Corefile":          fmt.Sprintf(corefile, kubeconfig),
		"kubelet.yaml":      fmt.Sprintf(kubeletConfig, n.folder, n.socket(containerd), n.cgroup, in("ca.crt"), p.kubeletPort),
		"resolv.conf":       "",
		"ca.crt":            string(authority),
	} {
		if err := os.MkdirAll(filepath.Dir(in(name)), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(in(name), []byte(content), 0o600); err != nil {
			return "", err
		}
	}
	_, bits, _ := strings.Cut(subnet, "/")
	content, err := json.MarshalIndent(inside.Config{
		Folder: n.folder, Bridge: bridge, Address: gateway + "/" + bits, MAC: bridgeMAC,
		APIServer: apiServer, Serve: []string{kubernetesIP + ":443"}, Socket: n.socket("apiserver"),
		Outside: n.socket(kubelet), Inside: net.JoinHostPort(gateway, strconv.Itoa(p.kubeletPort)),
		Programs: []inside.Program{
			{Name: "coredns", Args: []string{p.coredns, "-conf=" + in("Corefile")}},
			{Name: containerd, Args: []string{containerd, "--config=" + in("containerd.toml")}},
			{Name: kubelet, Later: true, Args: []string{
				p.kubelet, "--config=" + in("kubelet.yaml"), "--kubeconfig=" + kubeconfig, "--root-dir=" + in("kubelet"),
				"--cert-dir=" + in("kubelet"), "--hostname-override=" + Name, "--node-ip=" + gateway,
			}},
		},
	}, "", "  ")
	if err != nil {
		return "", err
	}
	return in("node.json"), os.WriteFile(in("node.json"), content, 0o600)
}
