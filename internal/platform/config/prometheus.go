package config

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// Prometheus is the server that is asked what pods used, and how. Any server with Prometheus's HTTP API will do.
type Prometheus struct {
	// URL of the server, http or https, with a path if it is served below one. No user and password: the configuration is logged.
	// Default: none, so that nothing is collected.
	URL string `json:"url"`
	// CAFile has the certificates, in PEM, that vouch for the server, an absolute path. Default: those of the system.
	CAFile string `json:"caFile"`
	// TokenFile has a bearer token, an absolute path. It is read again for each request, because tokens are renewed. Default: none.
	TokenFile string `json:"tokenFile"`
	// TimeoutSeconds is how long one query may take, from 1 to 300. Default: 30.
	TimeoutSeconds int32 `json:"timeoutSeconds"`
	// IntervalSeconds is how often usage is collected, from 60 to 86400. Default: 3600.
	IntervalSeconds int32 `json:"intervalSeconds"`
	// Trusted are the targets whose samples count.
	Trusted Trusted `json:"trusted"`
}

// Trusted are the targets of Prometheus whose samples are taken for true, by labels that Prometheus adds. A pod that is
// scraped may export any metric about any other.
type Trusted struct {
	// Kubelet, KubeStateMetrics and DCGM are values of label job. An empty list trusts all.
	Kubelet          []string `json:"kubelet"`
	KubeStateMetrics []string `json:"kubeStateMetrics"`
	DCGM             []string `json:"dcgm"`
	// DCGMNamespaces are those of dcgm-exporter where Prometheus names the pods by exported_pod. An empty list trusts all.
	DCGMNamespaces []string `json:"dcgmNamespaces"`
}

// DefaultPrometheus returns the default: no server, and the targets as kube-prometheus-stack, Prometheus' own chart and example,
// Grafana's chart k8s-monitoring and NVIDIA's GPU operator name them.
func DefaultPrometheus() Prometheus {
	return Prometheus{TimeoutSeconds: 30, IntervalSeconds: maxHour, Trusted: Trusted{
		Kubelet: []string{
			"kubelet", "kubernetes-cadvisor", "kubernetes-nodes-cadvisor", "integrations/kubernetes/cadvisor",
		},
		KubeStateMetrics: []string{"kube-state-metrics", "integrations/kubernetes/kube-state-metrics"},
		DCGM:             []string{"dcgm-exporter", "nvidia-dcgm-exporter", "integrations/dcgm-exporter"},
		DCGMNamespaces:   []string{"gpu-operator", "nvidia-gpu-operator", "kube-system", "monitoring"},
	}}
}

// IsConfigured is true if usage is collected.
func (s Prometheus) IsConfigured() bool { return s.URL != "" }

func (p *problems) prometheus(s Prometheus) {
	if s.URL != "" && !serverURL(s.URL) {
		// The value is not quoted: there may be a password or a token in it.
		p.add("prometheus.url", "is not the URL of a server: it must be http:// or https://, a host, a port if it is not that of the "+
			"scheme, "+
			"and a path if Prometheus is served below one, without user, password, ? and #; a token belongs into prometheus.tokenFile")
	}
	p.secretFile("prometheus.caFile", s.CAFile)
	p.secretFile("prometheus.tokenFile", s.TokenFile)
	p.between("prometheus.timeoutSeconds", s.TimeoutSeconds, 1, 300)
	p.between("prometheus.intervalSeconds", s.IntervalSeconds, 60, maxDay)
	for _, list := range []struct {
		name   string
		values []string
	}{
		{"kubelet", s.Trusted.Kubelet}, {"kubeStateMetrics", s.Trusted.KubeStateMetrics},
		{"dcgm", s.Trusted.DCGM}, {"dcgmNamespaces", s.Trusted.DCGMNamespaces},
	} {
		if slices.Contains(list.values, "") {
			// It would match samples that have no such label.
			p.add("prometheus.trusted."+list.name, "has an empty entry: it must be a list of names, or empty to trust all targets")
		}
	}
}

// secretFile checks that the path of a file is absolute. The value is not quoted: somebody may have put the secret there.
func (p *problems) secretFile(path, file string) {
	if file != "" && !filepath.IsAbs(file) {
		p.add(path, "is not an absolute path: it must be the path of a file, or empty for none")
	}
}

// serverURL is true for the URL of a server that holds no secret.
func serverURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && !strings.HasSuffix(u.Host, ":") &&
		!strings.ContainsAny(text, "@?#")
}
