package doctor

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/internal/platform/config"
)

// prometheusPort is where Prometheus and its operator serve.
const prometheusPort = 9090

// gatherServices reads the ports of all Services, and finds those of Prometheus by label or name.
func gatherServices(ctx context.Context, c client.Client, f *Facts) error {
	services := &corev1.ServiceList{}
	if err := c.List(ctx, services); err != nil {
		return fmt.Errorf("list Services: %w", err)
	}
	f.Services = map[client.ObjectKey][]int32{}
	for i := range services.Items {
		s := &services.Items[i]
		key := client.ObjectKeyFromObject(s)
		for _, p := range s.Spec.Ports {
			f.Services[key] = append(f.Services[key], p.Port)
		}
		named := s.Labels["app.kubernetes.io/name"] == "prometheus" || s.Labels["operated-prometheus"] != "" ||
			strings.Contains(s.Name, "prometheus")
		if named && slices.Contains(f.Services[key], prometheusPort) {
			f.Prometheuses = append(f.Prometheuses, key)
		}
	}
	slices.SortFunc(f.Prometheuses, func(a, b client.ObjectKey) int { return strings.Compare(a.String(), b.String()) })
	return nil
}

// prometheus judges whether the operator knows a Prometheus that is there. It says nothing where there is none.
func prometheus(f Facts, cfg *config.Configuration) []Finding {
	if cfg.Prometheus.IsConfigured() {
		return named(f, cfg.Prometheus.URL)
	}
	if len(f.Prometheuses) == 0 || f.Installed == nil {
		return nil
	}
	found := f.Prometheuses[0]
	address := fmt.Sprintf("http://%s.%s.svc:%d", found.Name, found.Namespace, prometheusPort)
	return []Finding{{
		Level: Warn,
		What: fmt.Sprintf("The operator asks no Prometheus (prometheus.url), so that it sizes no requests and reports know no use. "+
			"Service %s looks like one.", found),
		Do: "Set prometheus.url to " + address + ":",
		Run: f.Installed.helm("--set configuration.prometheus.url="+address, fmt.Sprintf("kubectl edit configmap --namespace %[1]s "+
			"%[2]s && kubectl rollout restart --namespace %[1]s deployment/%[3]s", f.Namespace, f.Installed.ConfigMap,
			f.deployment().Name)),
	}}
}

// named judges the address of a Prometheus: if it is that of a Service, that one is there.
func named(f Facts, address string) []Finding {
	at, err := url.Parse(address)
	if err != nil {
		return nil // which the configuration refuses
	}
	key, inside := serviceOf(at.Hostname(), f.Namespace)
	if !inside {
		what := "Whether Prometheus answers at " + address + ", which names no Service of the cluster."
		return []Finding{{Level: Unknown, What: what}}
	}
	port := map[string]int{"http": 80, "https": 443}[at.Scheme]
	if at.Port() != "" {
		port, _ = strconv.Atoi(at.Port())
	}
	ports, there := f.Services[key]
	what := fmt.Sprintf("prometheus.url is %s, and there is no Service %s", address, key)
	switch {
	case there && slices.Contains(ports, int32(port)): //nolint:gosec // A port is small.
		return []Finding{{Level: OK, What: fmt.Sprintf("The operator asks Prometheus by Service %s, which is there.", key)}}
	case there:
		what = fmt.Sprintf("prometheus.url is %s, and Service %s has no port %d, but %v", address, key, port, ports)
	}
	do := "Name the Service of Prometheus; this lists what there is:"
	if len(f.Prometheuses) > 0 {
		do = fmt.Sprintf("Name the Service of Prometheus, which may be %s; this lists what there is:", f.Prometheuses[0])
	}
	return []Finding{{What: what + ".", Do: do, Run: "kubectl get services --all-namespaces | grep -i prometheus"}}
}

// serviceOf is the Service that a host names, as NAME, NAME.NAMESPACE or NAME.NAMESPACE.svc and so on, for a pod of a namespace;
// false for a host of more names, or an address.
func serviceOf(host, namespace string) (client.ObjectKey, bool) {
	parts := strings.Split(host, ".")
	switch {
	case host == "localhost" || strings.Contains(host, ":"):
		return client.ObjectKey{}, false
	case len(parts) == 1:
		return client.ObjectKey{Namespace: namespace, Name: host}, true
	case len(parts) == 2 || parts[2] == "svc":
		return client.ObjectKey{Namespace: parts[1], Name: parts[0]}, true
	}
	return client.ObjectKey{}, false
}
