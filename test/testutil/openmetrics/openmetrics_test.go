package openmetrics

import (
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestWrite(t *testing.T) {
	g := NewWithT(t)
	noon := time.Date(2026, time.November, 3, 12, 0, 0, 0, time.UTC)
	var text strings.Builder
	g.Expect(Write(&text, time.Minute,
		Container{
			Namespace: "ads", Pod: "ctr-0", Name: "train", ID: "/a", Begin: noon, End: noon.Add(3 * time.Minute),
			CPU: Always(2), Throttled: Always(0.5), Memory: Always(1 << 30), MemoryLimit: 2 << 30,
			OOMEvents: From(noon.Add(time.Minute), 1),
		},
		Device{
			Namespace: "ads", Pod: "ctr-0", UUID: "GPU-1", Replica: "b", Begin: noon, End: noon.Add(time.Minute), Exported: true,
			Active: Always(0.25),
		},
	)).To(Succeed())
	lines := strings.Split(text.String(), "\n")
	const labels = `{namespace="ads",pod="ctr-0",container="train",id="/a",image="registry.example/image:1",` +
		`prometheus_replica="",job="kubelet"`
	g.Expect(lines).To(ContainElements(
		"container_cpu_usage_seconds_total"+labels+`,cpu="total"} 0 1793707200`,
		"container_cpu_usage_seconds_total"+labels+`,cpu="total"} 120 1793707260`,
		"container_cpu_usage_seconds_total"+labels+`,cpu="total"} 240 1793707320`,
		"container_cpu_cfs_periods_total"+labels+"} 1200 1793707320",
		"container_cpu_cfs_throttled_periods_total"+labels+"} 600 1793707320",
		"container_memory_working_set_bytes"+labels+"} 1.073741824e+09 1793707200",
		"container_spec_memory_limit_bytes"+labels+"} 2.147483648e+09 1793707200",
		"container_oom_events_total"+labels+"} 0 1793707200",
		"container_oom_events_total"+labels+"} 1 1793707260",
		`DCGM_FI_PROF_GR_ENGINE_ACTIVE{namespace="monitoring",pod="dcgm-exporter-x",exported_namespace="ads",exported_pod="ctr-0",`+
			`gpu="0",UUID="GPU-1",prometheus_replica="b",job="dcgm-exporter"} 0.25 1793707200`,
	))
	g.Expect(lines).To(HaveLen(6*3 + 1 + 2))
	g.Expect(lines[len(lines)-2:]).To(Equal([]string{"# EOF", ""}))
}

// full takes nothing.
type full struct{}

var errFull = errors.New("full")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteTellsThatItCannot(t *testing.T) {
	begin := time.Unix(0, 0)
	err := Write(full{}, time.Minute, Container{Begin: begin, End: begin.Add(time.Hour)})
	NewWithT(t).Expect(err).To(MatchError(errFull))
}
