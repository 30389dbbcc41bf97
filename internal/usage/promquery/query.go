package promquery

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/tideline-io/tideline/internal/platform/config"
)

// Metric is what is asked of containers or devices, as a value for each five minutes.
type Metric int

// Metrics of containers come from the kubelet's /metrics/cadvisor: cAdvisor's metrics/prometheus.go has their names and units,
// and containerPrometheusLabelsFunc in Kubernetes's pkg/kubelet/server/server.go their labels namespace, pod, container, id and
// image. The sandbox of a pod has container "POD" or none, and the cgroup of a pod as a whole has neither container nor image.
//
// Metrics of devices come from NVIDIA's dcgm-exporter: etc/default-counters.csv and etc/dcp-metrics-included.csv have their names
// and units, and its mapping of devices to pods adds the labels namespace, pod and container. Where Prometheus keeps those of the
// exporter itself (honor_labels: false, its default), they are called exported_namespace and exported_pod.
const (
	// CPU is processors in use, on average.
	CPU Metric = iota
	// ThrottledShare is the share of the periods of the kernel's scheduler in which a container was stopped because it had used its
	// limit. A container without a limit has none: cAdvisor leaves it out where there is no quota.
	ThrottledShare
	// WorkingSet is the highest memory in use, in bytes, without what the kernel can take back at once. It is what the limit is held
	// against.
	WorkingSet
	// MemoryLimit is the limit of memory, in bytes; 0 for none. Where cAdvisor's is not there, that of kube-state-metrics is taken:
	// the chart kube-prometheus-stack drops container_spec_*, because the two overlap.
	MemoryLimit
	// OOMEvents counts processes of a container that the kernel killed because memory ran out. It begins at 0 with the
	// container, so its series is of an id.
	OOMEvents
	// EngineActive is the share of the time for which a device computed.
	EngineActive
	// Utilization is the same in percent, by other means and of whole devices only.
	Utilization
	// FramebufferUsed is the memory in use on a device, in MiB.
	FramebufferUsed
)

// Query is a question to Prometheus, whose answer has a series for each container or device.
type Query struct {
	Metric Metric
	// Exported says that pods are named by the label exported_pod, and not pod.
	Exported bool
	Expr     string
}

// Batch is a number of pods of one namespace that are asked about together.
type Batch struct {
	Namespace string
	Pods      []string
	// Accelerated are those of the pods that hold accelerators.
	Accelerated []string
}

const (
	// maxPods bounds how many series an answer has: a day of 100 pods is some megabytes.
	maxPods = 100
	// maxNames bounds the length of the names in a query, in bytes as they are written there.
	maxNames = 8 << 10
)

// anyOf is a regular expression for just these names, as text of PromQL. Prometheus anchors it at both ends; the syntax of both
// is Go's (https://prometheus.io/docs/prometheus/latest/querying/basics/).
func anyOf(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name)
	}
	return strconv.Quote(strings.Join(quoted, "|"))
}

// BatchQueries are the questions about a batch to trusted targets. Each has the highest of series that differ in other labels
// only, because a pair of Prometheus for high availability has everything twice.
func BatchQueries(b Batch, trusted config.Trusted) []Query {
	pods := fmt.Sprintf("namespace=%s,pod=~%s", strconv.Quote(b.Namespace), anyOf(b.Pods))
	containers := pods + `,container!="",container!="POD",image!=""` + from("job", trusted.Kubelet)
	of := func(labels, function, metric, selectors string) string {
		return fmt.Sprintf("max by (%s) (%s(%s{%s}[5m]))", labels, function, metric, selectors)
	}
	const container = "namespace,pod,container"
	queries := []Query{
		// A series for each processor, which a cAdvisor of one's own may have, is not the container's.
		{CPU, false, of(container, "rate", "container_cpu_usage_seconds_total", containers+`,cpu=~"total|"`)},
		{ThrottledShare, false, of(container, "rate", "container_cpu_cfs_throttled_periods_total", containers) + " / " +
			of(container, "rate", "container_cpu_cfs_periods_total", containers)},
		{WorkingSet, false, of(container, "max_over_time", "container_memory_working_set_bytes", containers)},
		{MemoryLimit, false, of(container, "max_over_time", "container_spec_memory_limit_bytes", containers) + " or " +
			of(container, "max_over_time", "kube_pod_container_resource_limits",
				pods+`,container!="",resource="memory"`+from("job", trusted.KubeStateMetrics))},
		// A container that is killed is gone at the next look, so the highest count counts and not the last.
		{OOMEvents, false, of(container+",id", "max_over_time", "container_oom_events_total", containers)},
	}
	if len(b.Accelerated) == 0 {
		return queries
	}
	return append(queries, deviceQueries(b, trusted)...)
}

// deviceQueries are the questions about the accelerators of a batch.
func deviceQueries(b Batch, trusted config.Trusted) []Query {
	var queries []Query
	for _, device := range []struct {
		metric         Metric
		function, name string
	}{
		{EngineActive, "avg_over_time", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"},
		{Utilization, "avg_over_time", "DCGM_FI_DEV_GPU_UTIL"},
		{FramebufferUsed, "max_over_time", "DCGM_FI_DEV_FB_USED"},
	} {
		for _, exported := range []bool{false, true} {
			prefix, exporter := exportedPrefix(exported), from("job", trusted.DCGM)
			if exported { // else label namespace is the pod's
				exporter += from("namespace", trusted.DCGMNamespaces)
			}
			queries = append(queries, Query{device.metric, exported, fmt.Sprintf(
				"max by (%[1]snamespace,%[1]spod,UUID,gpu,GPU_I_ID) (%[2]s(%[3]s{%[1]snamespace=%[4]s,%[1]spod=~%[5]s%[6]s}[5m]))",
				prefix, device.function, device.name, strconv.Quote(b.Namespace), anyOf(b.Accelerated), exporter)})
		}
	}
	return queries
}

// from selects targets by a label, or all if none is named.
func from(label string, values []string) string {
	if len(values) == 0 {
		return ""
	}
	return "," + label + "=~" + anyOf(values)
}

// exportedPrefix is what Prometheus puts before labels that the target has itself.
func exportedPrefix(exported bool) string {
	if exported {
		return "exported_"
	}
	return ""
}
