// Package openmetrics writes what containers and accelerators used as Prometheus would have scraped it from kubelets and from
// dcgm-exporter: text with times, of which promtool makes a database.
package openmetrics

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"time"
)

// Use is what is used at a time; nil for what nobody measures.
type Use func(time.Time) float64

// Always is the same at all times.
func Always(value float64) Use { return func(time.Time) float64 { return value } }

// From is nothing until a time, and the same from then on.
func From(begin time.Time, value float64) Use {
	return func(at time.Time) float64 {
		if at.Before(begin) {
			return 0
		}
		return value
	}
}

// Subject is something that has metrics.
type Subject interface{ write(w *writer) }

// Container is a container of a pod. One without a name is the pod's cgroup as a whole, which has no image.
type Container struct {
	Namespace, Pod, Name string
	// ID of the container, which another one of that name has not. Default: one for the name.
	ID         string
	Begin, End time.Time
	// Replica is which of a pair of Prometheus scraped it; empty for the only one.
	Replica string
	// Job of the target that exports it. Default: kubelet.
	Job string

	// CPU is processors in use, and Throttled the share of periods at whose end it was stopped; nil for one without limit.
	CPU, Throttled Use
	// Memory is its working set, in bytes.
	Memory Use
	// MemoryLimit in bytes; 0 for none. NoSpec leaves it out, as where nobody keeps what kube-state-metrics knows too.
	MemoryLimit float64
	NoSpec      bool
	// OOMEvents is how many processes of it were killed for want of memory so far.
	OOMEvents Use
}

// periodsPerSecond is how often the kernel's scheduler looks at a limit by default, per second.
const periodsPerSecond = 10

func (c Container) write(w *writer) {
	image := ""
	if c.Name != "" {
		image = "registry.example/image:1"
	}
	id := c.ID
	if id == "" {
		id = "/kubepods/" + c.Pod + "/" + c.Name
	}
	labels := fmt.Sprintf("namespace=%q,pod=%q,container=%q,id=%q,image=%q,prometheus_replica=%q,job=%q",
		c.Namespace, c.Pod, c.Name, id, image, c.Replica, cmp.Or(c.Job, "kubelet"))
	w.counter("container_cpu_usage_seconds_total", labels+`,cpu="total"`, c.Begin, c.End, c.CPU)
	if c.Throttled != nil {
		w.counter("container_cpu_cfs_periods_total", labels, c.Begin, c.End, Always(periodsPerSecond))
		w.counter("container_cpu_cfs_throttled_periods_total", labels, c.Begin, c.End, func(at time.Time) float64 {
			return periodsPerSecond * c.Throttled(at)
		})
	}
	w.gauge("container_memory_working_set_bytes", labels, c.Begin, c.End, c.Memory)
	if !c.NoSpec {
		w.gauge("container_spec_memory_limit_bytes", labels, c.Begin, c.End, Always(c.MemoryLimit))
	}
	w.gauge("container_oom_events_total", labels, c.Begin, c.End, c.OOMEvents)
}

// Device is an accelerator that a pod holds.
type Device struct {
	Namespace, Pod, UUID string
	Begin, End           time.Time
	Replica              string
	// Exported names the pod by exported_pod, because Prometheus kept pod for the exporter's own.
	Exported bool
	// Exporter is the namespace of what exports it, if Exported, and Job the target's. Defaults: monitoring, dcgm-exporter.
	Exporter, Job string

	// Active is the share of the time for which it computed, and Utilization the same in percent.
	Active, Utilization Use
	// MemoryMiB is the memory in use.
	MemoryMiB Use
}

func (d Device) write(w *writer) {
	labels := fmt.Sprintf("namespace=%q,pod=%q", d.Namespace, d.Pod)
	if d.Exported {
		labels = fmt.Sprintf(`namespace=%q,pod="dcgm-exporter-x",exported_namespace=%q,exported_pod=%q`,
			cmp.Or(d.Exporter, "monitoring"), d.Namespace, d.Pod)
	}
	labels += fmt.Sprintf(",gpu=\"0\",UUID=%q,prometheus_replica=%q,job=%q", d.UUID, d.Replica, cmp.Or(d.Job, "dcgm-exporter"))
	w.gauge("DCGM_FI_PROF_GR_ENGINE_ACTIVE", labels, d.Begin, d.End, d.Active)
	w.gauge("DCGM_FI_DEV_GPU_UTIL", labels, d.Begin, d.End, d.Utilization)
	w.gauge("DCGM_FI_DEV_FB_USED", labels, d.Begin, d.End, d.MemoryMiB)
}

// Write writes the metrics of all subjects, scraped so often, in whole seconds.
func Write(to io.Writer, every time.Duration, subjects ...Subject) error {
	w := &writer{to: to, every: every}
	for _, s := range subjects {
		s.write(w)
	}
	w.print("# EOF\n")
	return w.err
}

// writer keeps the first error.
type writer struct {
	to    io.Writer
	every time.Duration
	line  []byte
	err   error
}

func (w *writer) print(line string) {
	if w.err == nil {
		_, w.err = io.WriteString(w.to, line)
	}
}

// counter writes what use per second comes to since begin.
func (w *writer) counter(name, labels string, begin, end time.Time, use Use) {
	if use == nil {
		return
	}
	sum := 0.0
	w.gauge(name, labels, begin, end, func(at time.Time) float64 {
		now := sum
		sum += use(at) * w.every.Seconds()
		return now
	})
}

// gauge writes a series from begin until before end.
func (w *writer) gauge(name, labels string, begin, end time.Time, value Use) {
	if value == nil {
		return
	}
	series := name + "{" + labels + "} "
	for at := begin; at.Before(end) && w.err == nil; at = at.Add(w.every) {
		w.line = append(w.line[:0], series...)
		w.line = strconv.AppendFloat(w.line, value(at), 'g', -1, 64)
		w.line = append(w.line, ' ')
		w.line = strconv.AppendInt(w.line, at.Unix(), 10)
		w.line = append(w.line, '\n')
		_, w.err = w.to.Write(w.line)
	}
}
