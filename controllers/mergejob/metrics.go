package mergejob

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/merging"
)

const (
	labelNamespace, labelName, labelPool, labelOutcome = "namespace", "name", "pool", "outcome"
)

// Buckets, in seconds: of waits from an idle pool to a week's line, of runs from a minute to a day, of decisions from 100 µs.
var (
	waitBuckets     = []float64{1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 2 * 3600, 4 * 3600, 12 * 3600, 24 * 3600, 7 * 24 * 3600}
	runBuckets      = []float64{10, 60, 120, 300, 600, 900, 1200, 1800, 2700, 3600, 2 * 3600, 4 * 3600, 8 * 3600, 24 * 3600}
	decisionBuckets = []float64{0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1}
)

// metrics are the metrics of merges (docs/metrics.md). Transitions are counted after the status write that records them has
// succeeded, so none is counted twice.
type metrics struct {
	wait, run *prometheus.HistogramVec
	decision  prometheus.Histogram
	runs      *prometheus.CounterVec
	attempts  *prometheus.CounterVec
	ages      *ages
}

func newMetrics(now func() time.Time, jobs toolscache.Store, elected <-chan struct{}) *metrics {
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{labelPool})
	}
	return &metrics{
		wait: histogram("tideline_merge_wait_seconds", "Time from joining the line of a pool until all pods of the merge run; once "+
			"for each run that ran.", waitBuckets),
		run: histogram("tideline_merge_run_seconds", "Time from when all pods of a merge ran until it ended; once for each run that "+
			"ran.", runBuckets),
		decision: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "tideline_merge_decision_seconds",
			Help: "Time to decide about all merges of a pool, without reads and writes.", Buckets: decisionBuckets}),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tideline_merge_runs_total",
			Help: "Finished runs of merges, by pool and outcome."}, []string{labelPool, labelOutcome}),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tideline_merge_attempts_total",
			Help: "Attempts of merges to get their place, by pool."}, []string{labelPool}),
		ages: &ages{jobs: jobs, elected: elected, now: now},
	}
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.wait, m.run, m.decision, m.runs, m.attempts, m.ages}
}

// Describe sends the descriptions of the metrics.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(to)
	}
}

// Collect sends the metrics.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.collectors() {
		c.Collect(to)
	}
}

// observeDecision counts one decision about a pool.
func (m *metrics) observeDecision(took time.Duration) { m.decision.Observe(took.Seconds()) }

// countTransition counts what changed with one written status.
func (m *metrics) countTransition(job *v1beta1.MergeJob, written *v1beta1.MergeJobStatus) {
	measured := merging.MeasureChange(&job.Status, written)
	if measured.Attempt {
		m.attempts.WithLabelValues(written.Pool).Inc()
	}
	if measured.Wait != nil {
		m.wait.WithLabelValues(written.Pool).Observe(measured.Wait.Seconds())
	}
	if measured.Run != nil {
		m.run.WithLabelValues(written.Pool).Observe(measured.Run.Seconds())
	}
	if measured.Outcome != "" {
		m.runs.WithLabelValues(written.Pool, string(measured.Outcome)).Inc()
	}
}

var (
	fullDesc = prometheus.NewDesc("tideline_merge_full_model_age_seconds",
		"Age of the newest full model, or of the MergeJob before the first one.",
		[]string{labelNamespace, labelName, labelPool}, nil)
	incrementDesc = prometheus.NewDesc("tideline_merge_newest_increment_age_seconds",
		"Age of the newest increment, by the store's clock; absent before the first one.",
		[]string{labelNamespace, labelName, labelPool}, nil)
	intervalDesc = prometheus.NewDesc("tideline_merge_interval_seconds",
		"Age of the full model at which the next merge is due; absent without a schedule.",
		[]string{labelNamespace, labelName, labelPool}, nil)
	lineDesc     = prometheus.NewDesc("tideline_merge_line_length", "Merges that wait for their turn.", []string{labelPool}, nil)
	awaitingDesc = prometheus.NewDesc("tideline_merge_awaiting_approval",
		"Merges that are due and wait for approval of their tier.", []string{labelPool}, nil)
	headDesc = prometheus.NewDesc("tideline_merge_head_wait_seconds",
		"How long the head of the line has been asking for its place; absent if no merge asks.", []string{labelPool}, nil)
)

// ages computes, at each scrape, figures that grow with time from the MergeJobs in the manager's cache. It has one series
// for each model, because its owner wants to know the age of this one model.
type ages struct {
	jobs    toolscache.Store
	elected <-chan struct{}
	now     func() time.Time
}

// Describe sends the descriptions of the metrics.
func (*ages) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{fullDesc, incrementDesc, intervalDesc, lineDesc, headDesc, awaitingDesc} {
		to <- d
	}
}

// Collect sends them; nothing in a standby operator.
func (a *ages) Collect(to chan<- prometheus.Metric) {
	select {
	case <-a.elected:
	default:
		return
	}
	line, awaiting := map[string]int{}, map[string]int{}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	for _, o := range a.jobs.List() {
		job, ok := o.(*v1beta1.MergeJob)
		if !ok {
			continue
		}
		ages, pool := merging.AgesOf(job, a.now()), poolOf(job)
		labels := []string{job.Namespace, job.Name, pool}
		gauge(fullDesc, ages.Full.Seconds(), labels...)
		if ages.Increment != nil {
			gauge(incrementDesc, ages.Increment.Seconds(), labels...)
		}
		if ages.Interval > 0 {
			gauge(intervalDesc, ages.Interval.Seconds(), labels...)
		}
		if ages.Head != nil {
			gauge(headDesc, ages.Head.Seconds(), pool)
		}
		if line[pool] += 0; job.Status.Position != nil {
			line[pool]++
		}
		if job.Status.Reason == v1beta1.ReasonAwaitingApproval {
			awaiting[pool]++
		}
	}
	for pool, n := range line {
		gauge(lineDesc, float64(n), pool)
		gauge(awaitingDesc, float64(awaiting[pool]), pool)
	}
}
