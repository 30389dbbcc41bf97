package promquery

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/usage/sizing"
	"github.com/tideline-io/tideline/test/testutil/openmetrics"
	"github.com/tideline-io/tideline/test/testutil/prometheus"
)

// server is nil where Prometheus can neither be found nor built.
var server *prometheus.Server

func TestMain(m *testing.M) {
	os.Exit(func() int {
		// Before the clock of the tests runs: the first time takes minutes.
		if err := prometheus.Build(context.Background(), os.Stderr); err != nil {
			_, _ = fmt.Fprintln(os.Stdout, "not run: usage on a real Prometheus, which cannot be built:", err)
			return m.Run()
		}
		var err error
		if server, err = prometheus.Start(context.Background(), os.Stderr, week); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = server.Stop() }()
		return m.Run()
	}())
}

// weekBegins is when the week begins that the server knows, whose last day is that of the tests.
var weekBegins = tomorrow.Add(-7 * 24 * time.Hour)

// offset is when scrapes begin: never at the end of five minutes, which Prometheus 2 counts to both sides.
const offset = 7 * time.Second

// scraped is the first scrape after a time of the day.
func scraped(hour, minute int) time.Time { return at(hour, minute).Add(offset) }

// used is a container of task ctr that ran all week, until somebody says otherwise.
func used(pod string, processors float64, gibibytes float64) openmetrics.Container {
	return openmetrics.Container{
		Namespace: "ads", Pod: pod, Name: "train", Begin: weekBegins.Add(offset), End: tomorrow.Add(time.Hour),
		CPU: openmetrics.Always(processors), Memory: openmetrics.Always(gibibytes * gib), MemoryLimit: 16 * gib,
	}
}

// within is a container that was there for a part of the day.
func within(c openmetrics.Container, id string, begin, end time.Time) openmetrics.Container {
	c.ID, c.Begin, c.End = id, begin, end
	return c
}

// week is what the server knows.
func week(w io.Writer) error {
	steady, twice := used("steady-0", 2, 8), used("steady-0", 2, 8)
	twice.Replica, twice.Begin = "b", weekBegins.Add(15*time.Second)
	sandbox, cgroup := used("steady-0", 50, 50), used("steady-0", 52, 58)
	sandbox.Name, cgroup.Name = "POD", ""
	hot := used("hot-0", 1, 15.5)
	hot.Throttled = openmetrics.Always(0.4)
	short := within(used("short-0", 3, 1), "/short", scraped(10, 2), scraped(10, 21))
	first := within(used("reused-0", 4, 1), "/first", scraped(11, 0), scraped(12, 1))
	second := within(used("reused-0", 5, 1), "/second", scraped(12, 2), scraped(13, 0))
	killed := within(used("killed-0", 1, 1), "/killed", scraped(14, 0), scraped(14, 59))
	killed.OOMEvents = openmetrics.From(at(14, 58), 1)
	again := within(used("killed-0", 1, 1), "/again", scraped(15, 0), scraped(16, 0))
	again.OOMEvents = openmetrics.Always(0)
	unlimited := within(used("unlimited-0", 1, 15.5), "/unlimited", scraped(0, 0), scraped(1, 0))
	unlimited.MemoryLimit = 0
	limited := within(used("limited-0", 1, 15.5), "/limited", scraped(0, 0), scraped(1, 0))
	limited.NoSpec = true
	for minute := range 60 {
		if _, err := fmt.Fprintf(w, "kube_pod_container_resource_limits{namespace=\"ads\",pod=\"limited-0\",container=\"train\","+
			"job=\"kube-state-metrics\",resource=\"memory\"} %d %d\n", 16*gib, scraped(0, minute).Unix()); err != nil {
			return err
		}
	}
	device := openmetrics.Device{
		Namespace: "ads", Pod: "steady-0", UUID: "GPU-1", Begin: scraped(0, 0), End: tomorrow.Add(time.Hour), Exported: true,
		Active: openmetrics.Always(0.5), Utilization: openmetrics.Always(90), MemoryMiB: openmetrics.Always(40_000),
	}
	idle, other, plain := device, device, device
	idle.UUID, idle.Active, idle.MemoryMiB = "GPU-2", openmetrics.Always(0), openmetrics.Always(1)
	other.Replica = "b"
	plain.Pod, plain.UUID, plain.Exported, plain.Active, plain.MemoryMiB = "hot-0", "GPU-3", false, nil, nil
	// What a pod of the team's own exports about its pods: more of everything.
	lie, busy, inside := used("steady-0", 9, 15), device, device
	lie.Job, lie.OOMEvents, lie.ID = "kubernetes-pods", openmetrics.From(at(1, 0), 5), "/lie"
	busy.Job, busy.Active, busy.MemoryMiB = "kubernetes-pods", openmetrics.Always(1), openmetrics.Always(80_000)
	inside.Exporter, inside.Active, inside.MemoryMiB = "ads", openmetrics.Always(1), openmetrics.Always(80_000)
	return openmetrics.Write(w, time.Minute, steady, twice, used("steady-1", 1, 4), sandbox, cgroup, hot, short, first, second,
		killed, again, unlimited, limited, device, idle, other, plain, lie, busy, inside)
}

// asked is what the server knows of a day.
func asked(t *testing.T, day time.Time, stays ...Stay) map[sizing.Key]sizing.Usage {
	t.Helper()
	c := config.DefaultPrometheus()
	c.URL = server.URL
	client := newClient(t, c)
	usage, err := client.Collect(t.Context(), day, stays, tomorrow)
	if err != nil {
		t.Fatal(err)
	}
	return usage
}

// near holds a histogram to samples of one number of processors, to a bucket of 5 %.
func near(g *WithT, h sizing.Histogram, processors float64, samples int64) {
	allowed := histogram(processors/1.05, processors, processors*1.05)
	for bucket := range h {
		g.Expect(allowed).To(HaveKey(bucket), "buckets near %g processors", processors)
	}
	g.Expect(h.SampleCount()).To(Equal(samples))
}

func TestWeekOfATask(t *testing.T) {
	if server == nil {
		t.Skip("there is no Prometheus, and none could be built")
	}
	g := NewWithT(t)
	var whole sizing.Usage
	for day := weekBegins; day.Before(tomorrow); day = day.Add(24 * time.Hour) {
		usage := asked(t, day, stay("steady-0", weekBegins), stay("steady-1", weekBegins))
		g.Expect(usage).To(HaveLen(1), "neither the sandbox nor the pod's cgroup")
		whole = whole.Merge(usage[train(sizing.Worker)])
	}
	near(g, whole.CPU, 2, 7*288)
	g.Expect(whole.Throttled).To(BeEmpty())
	g.Expect(whole.MemoryPeak).To(Equal(int64(8 * gib)))
	g.Expect(whole.MemoryHeld).To(BeZero())
	g.Expect([]int64{whole.RunSeconds, whole.SeenSeconds, whole.EvidenceSeconds}).To(HaveEach(int64(7 * 86400)))
	g.Expect(whole.OOMKills).To(BeZero())
}

func TestContainersAtTheirLimits(t *testing.T) {
	if server == nil {
		t.Skip("there is no Prometheus, and none could be built")
	}
	g := NewWithT(t)
	usage := asked(t, day, stay("hot-0", weekBegins))[train(sizing.Worker)]
	near(g, usage.Throttled, 1, 288)
	g.Expect(usage.CPU).To(BeEmpty())
	g.Expect(usage.MemoryHeld).To(Equal(int64(15.5 * gib)))
	g.Expect(usage.MemoryPeak).To(BeZero())
	g.Expect(usage.SeenSeconds).To(Equal(int64(86400)))
	g.Expect(usage.EvidenceSeconds).To(BeZero())

	usage = asked(t, day, stay("unlimited-0", at(0, 0)))[train(sizing.Worker)]
	g.Expect(usage.MemoryPeak).To(Equal(int64(15.5*gib)), "0 is no limit")
	usage = asked(t, day, stay("limited-0", at(0, 0)))[train(sizing.Worker)]
	g.Expect(usage.MemoryHeld).To(Equal(int64(15.5*gib)), "kube-state-metrics knows the limit")
}

func TestPodOfTwentyMinutes(t *testing.T) {
	if server == nil {
		t.Skip("there is no Prometheus, and none could be built")
	}
	g := NewWithT(t)
	usage := asked(t, day, stay("short-0", at(10, 2)).until(at(10, 22)).master("r", true))[train(sizing.Master)]
	near(g, usage.CPU, 3, 2)
	g.Expect(usage.RunSeconds).To(Equal(int64(5 * 300)))
	g.Expect(usage.SeenSeconds).To(Equal(int64(4*300)), "one scrape tells no rate")
	g.Expect(usage.EvidenceSeconds).To(Equal(int64(86400)))
}

func TestPodsOfOneName(t *testing.T) {
	if server == nil {
		t.Skip("there is no Prometheus, and none could be built")
	}
	g := NewWithT(t)
	usage := asked(t, day, stay("reused-0", at(11, 0)).until(at(12, 1)), stay("reused-0", at(12, 2)).until(at(13, 0)).of("cvr"))
	near(g, usage[train(sizing.Worker)].CPU, 4, 11)
	other := train(sizing.Worker)
	other.Task = "cvr"
	near(g, usage[other].CPU, 5, 10)

	usage = asked(t, day, stay("killed-0", at(14, 0)))
	g.Expect(usage[train(sizing.Worker)].OOMKills).To(Equal(int64(1)))
	g.Expect(usage[train(sizing.Worker)].OOMLimit).To(Equal(int64(16 * gib)))
}

// The week's lies are about pod steady-0, whose other tests would see them too.
func TestFiguresOfOtherTargetsDoNotCount(t *testing.T) {
	if server == nil {
		t.Skip("there is no Prometheus, and none could be built")
	}
	g := NewWithT(t)
	all := newClient(t, config.Prometheus{URL: server.URL, TimeoutSeconds: 30})
	forged, err := all.Collect(t.Context(), day, []Stay{stay("steady-0", weekBegins).holds(2000)}, tomorrow)
	g.Expect(err).NotTo(HaveOccurred())
	near(g, forged[train(sizing.Worker)].CPU, 9, 288)
	g.Expect(forged[whole()].Accelerators.MemoryPeakMiB).To(Equal(int64(80_000)), "where all targets are trusted")

	usage := asked(t, day, stay("steady-0", weekBegins).holds(2000))
	near(g, usage[train(sizing.Worker)].CPU, 2, 288)
	g.Expect(usage[train(sizing.Worker)].OOMKills).To(BeZero())
	g.Expect(usage[whole()].Accelerators.MemoryPeakMiB).To(Equal(int64(40_000)))
}

func TestDevices(t *testing.T) {
	if server == nil {
		t.Skip("there is no Prometheus, and none could be built")
	}
	g := NewWithT(t)
	usage := asked(t, day, stay("steady-0", weekBegins).holds(2000))
	g.Expect(usage[whole()]).To(Equal(sizing.Usage{
		RunSeconds: 86400, SeenSeconds: 86400, EvidenceSeconds: 86400, Accelerators: sizing.AcceleratorUsage{
			HeldSeconds: 2 * 86400, ActiveMilliseconds: 43_200_000, MemoryPeakMiB: 40_000,
			LastBusy: tomorrow.Unix(), LastSeen: tomorrow.Unix(),
		},
	}))
	usage = asked(t, day, stay("hot-0", weekBegins).holds(1000))
	g.Expect(usage[whole()].Accelerators).To(Equal(sizing.AcceleratorUsage{
		HeldSeconds: 86400, ActiveMilliseconds: 77_760_000, LastBusy: tomorrow.Unix(), LastSeen: tomorrow.Unix(),
	}))
}

func TestPrometheusReadsHostileNames(t *testing.T) {
	if server == nil {
		t.Skip("there is no Prometheus, and none could be built")
	}
	g := NewWithT(t)
	stays := []Stay{stay("steady-0", weekBegins)}
	for _, name := range hostile {
		stays = append(stays, stay(name, weekBegins).of(name).holds(1000), Stay{Namespace: name, Pod: name, Begin: weekBegins})
	}
	usage := asked(t, day, stays...)
	g.Expect(usage).To(HaveKey(train(sizing.Worker)))
	for key := range usage {
		g.Expect(key.Task == "ctr" || key.Container == "").To(BeTrue(), "%+v has nothing", key)
	}
}
