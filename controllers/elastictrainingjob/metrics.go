package elastictrainingjob

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/training/describe"
	"github.com/tideline-io/tideline/internal/training/losses"
)

// Labels have few values, all known beforehand: tiers are those of the operator's configuration, all others are listed in
// internal/training. Jobs, namespaces, users and queues are not labels, because their number grows with use.
const (
	labelTier, labelCause, labelReason, labelPart, labelPhase = "tier", "cause", "reason", "part", "phase"

	partCore, partSurplus = "core", "surplus"
	// noTier is the label of a job whose tier is not, or no longer, in the configuration.
	noTier = "unknown"
)

// waitBuckets are the upper bounds of the wait histograms, in seconds: from a cluster with free room to a queue of a week.
var waitBuckets = []float64{
	1, 5, 15, 30, 60, 2 * 60, 5 * 60, 10 * 60, 30 * 60, 3600, 2 * 3600, 4 * 3600, 12 * 3600, 24 * 3600, 3 * 24 * 3600, 7 * 24 * 3600,
}

// outageBuckets are those of outages, up to the longest that is measured.
var outageBuckets = []float64{1, 5, 10, 15, 30, 45, 60, 90, 2 * 60, 3 * 60, 5 * 60, 10 * 60, 30 * 60, 3600}

// metrics are the figures over all jobs that Prometheus reads (docs/metrics.md). Counters begin at zero with the process. What a
// status write reports is counted after the write succeeded, so it is never counted twice.
type metrics struct {
	tiers                        config.Tiers
	wait, placement, outage      *prometheus.HistogramVec
	resizes, evictions, restarts *prometheus.CounterVec
	inVain                       *prometheus.CounterVec
	gpus                         *gpuTime
	phases                       *phases
	unjudged                     prometheus.Collector
}

// newMetrics returns metrics of the jobs in a store, which are counted once elected is closed: an operator that stands by
// counts none, so that the sum over all operators is right. unknown counts the waiting gangs that the model of capacity does not
// cover, by what they ask for.
func newMetrics(
	tiers config.Tiers, now func() time.Time, jobs toolscache.Store, unknown func() map[string]int, elected <-chan struct{},
) *metrics {
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{labelTier})
	}
	counter := func(name, help, label string, values []string) *prometheus.CounterVec {
		vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
		for _, value := range values {
			vec.WithLabelValues(value) // Without a zero before the first increment, rate() misses it.
		}
		return vec
	}
	m := &metrics{
		tiers: tiers,
		wait: histogram("tideline_job_wait_seconds",
			"Time from a job's creation until its core first ran. Observed once per job.", waitBuckets),
		placement: histogram("tideline_job_placement_seconds",
			"Time from the beginning of an attempt until Volcano placed its whole core. Observed once per attempt whose core ran.",
			waitBuckets),
		outage: histogram("tideline_job_outage_seconds",
			"Time for which a change of size kept a training from progress. Observed once per measurement.", outageBuckets),
		resizes: counter("tideline_job_resizes_total",
			"Size changes of running trainings, by cause.", labelCause, describe.ResizeCauses()),
		evictions: counter("tideline_evictions_total",
			"Workers taken away from jobs for reasons outside the job, by reason.", labelReason, losses.EvictionReasons()),
		inVain: counter("tideline_evictions_in_vain_total",
			"Workers that made room for a gang that was not placed in time, by why they left.", labelReason,
			[]string{losses.EvictionTold, losses.EvictionPreempted}),
		restarts: counter("tideline_restarts_total",
			"Restarts counted against restarts.max, by cause.", labelCause, losses.RestartCauses()),
		gpus:   newGPUTime(tiers, now),
		phases: &phases{jobs: jobs, elected: elected}, unjudged: collectUnjudged(unknown, elected),
	}
	for _, tier := range tiers {
		m.wait.WithLabelValues(tier.Name)
		m.placement.WithLabelValues(tier.Name)
		m.outage.WithLabelValues(tier.Name)
	}
	return m
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		m.wait, m.placement, m.outage, m.resizes, m.evictions, m.inVain, m.restarts, m.gpus, m.phases,
		m.unjudged,
	}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.collectors() {
		c.Collect(to)
	}
}

// addMeasures adds what one written status reported.
func (m *metrics) addMeasures(job *v1beta1.ElasticTrainingJob, measured describe.Measures) {
	tier := m.tierOf(job)
	if measured.Wait != nil {
		m.wait.WithLabelValues(tier).Observe(measured.Wait.Seconds())
	}
	if measured.Placement != nil {
		m.placement.WithLabelValues(tier).Observe(measured.Placement.Seconds())
	}
	for _, cause := range measured.Resizes {
		m.resizes.WithLabelValues(cause).Inc()
	}
	for reason, n := range measured.Evictions {
		m.evictions.WithLabelValues(reason).Add(float64(n))
	}
	if measured.InVain > 0 {
		m.inVain.WithLabelValues(measured.InVainReason).Add(float64(measured.InVain))
	}
	for cause, n := range measured.Restarts {
		m.restarts.WithLabelValues(cause).Add(float64(n))
	}
}

// addOutage adds a measurement that status has now.
func (m *metrics) addOutage(job *v1beta1.ElasticTrainingJob, outage time.Duration) {
	m.outage.WithLabelValues(m.tierOf(job)).Observe(outage.Seconds())
}

// holdGPUs notes what GPUs a job holds by the status that the API server has now. claimed is how many each worker has by
// resource claims.
func (m *metrics) holdGPUs(job *v1beta1.ElasticTrainingJob, written *status, claimed int64) {
	core, surplus := describe.HeldGPUs(job, written, claimed)
	m.gpus.hold(client.ObjectKeyFromObject(job), holding{tier: m.tierOf(job), core: core, surplus: surplus})
}

// forget notes that a job is gone.
func (m *metrics) forget(job types.NamespacedName) { m.gpus.hold(job, holding{}) }

func (m *metrics) tierOf(job *v1beta1.ElasticTrainingJob) string {
	if tier, ok := m.tiers.InEffect(job.EffectiveTier(), job.Status.Tier); ok {
		return tier.Name
	}
	return noTier
}

// gpuTime counts GPU-seconds: the integral over time of the GPUs that jobs hold. Time is this process's monotonic clock, and runs
// on while a job at rest writes no status. A scrape costs the same for any number of jobs.
type gpuTime struct {
	desc *prometheus.Desc
	now  func() time.Time

	mu    sync.Mutex
	jobs  map[types.NamespacedName]holding // only jobs that hold GPUs
	tiers map[string]*account
}

// holding are the GPUs that a job holds.
type holding struct {
	tier          string
	core, surplus int64
}

// account is what the jobs of a tier hold since a time, and the GPU-seconds that they held until then.
type account struct {
	core, surplus               int64
	since                       time.Time
	coreSeconds, surplusSeconds float64
}

func newGPUTime(tiers config.Tiers, now func() time.Time) *gpuTime {
	g := &gpuTime{
		desc: prometheus.NewDesc("tideline_gpu_seconds_total",
			"Time that GPUs were held by ready workers, in GPU-seconds: of the core and of the surplus of jobs, by tier.",
			[]string{labelPart, labelTier}, nil),
		now: now, jobs: map[types.NamespacedName]holding{}, tiers: map[string]*account{},
	}
	for _, tier := range tiers {
		g.tiers[tier.Name] = &account{since: now()}
	}
	return g
}

// hold replaces what the job held until now.
func (g *gpuTime) hold(job types.NamespacedName, h holding) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if h.core+h.surplus == 0 {
		h = holding{}
	}
	held := g.jobs[job]
	if held == h {
		return
	}
	g.changeHeld(held.tier, -held.core, -held.surplus)
	g.changeHeld(h.tier, h.core, h.surplus)
	if h == (holding{}) {
		delete(g.jobs, job)
	} else {
		g.jobs[job] = h
	}
}

// changeHeld adds to what a tier holds from now on; it does nothing for an empty tier.
func (g *gpuTime) changeHeld(tier string, core, surplus int64) {
	if tier == "" {
		return
	}
	if g.tiers[tier] == nil {
		g.tiers[tier] = &account{}
	}
	a := g.tiers[tier]
	a.settle(g.now())
	a.core += core
	a.surplus += surplus
}

// settle adds the GPU-seconds up to now. A time before the last one changes nothing.
func (a *account) settle(now time.Time) {
	if now.Before(a.since) {
		return
	}
	seconds := now.Sub(a.since).Seconds()
	a.coreSeconds += float64(a.core) * seconds
	a.surplusSeconds += float64(a.surplus) * seconds
	a.since = now
}

// Describe implements prometheus.Collector.
func (g *gpuTime) Describe(to chan<- *prometheus.Desc) { to <- g.desc }

// Collect implements prometheus.Collector.
func (g *gpuTime) Collect(to chan<- prometheus.Metric) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for tier, a := range g.tiers {
		a.settle(g.now())
		to <- prometheus.MustNewConstMetric(g.desc, prometheus.CounterValue, a.coreSeconds, partCore, tier)
		to <- prometheus.MustNewConstMetric(g.desc, prometheus.CounterValue, a.surplusSeconds, partSurplus, tier)
	}
}

var jobsDesc = prometheus.NewDesc("tideline_jobs",
	"Jobs by status.phase. Jobs that the operator has not looked at yet count as Pending.", []string{labelPhase}, nil)

var awaitingDesc = prometheus.NewDesc("tideline_jobs_awaiting_approval",
	"Jobs that wait for approval of their tier. They count as Pending too.", nil, nil)

// phases counts the jobs in the manager's cache at each scrape, so that no count can drift. It reads the cache's store directly,
// because a list by the client would copy the spec of every job.
type phases struct {
	jobs    toolscache.Store
	elected <-chan struct{}
}

// Describe implements prometheus.Collector.
func (*phases) Describe(to chan<- *prometheus.Desc) { to <- jobsDesc; to <- awaitingDesc }

// Collect implements prometheus.Collector.
func (p *phases) Collect(to chan<- prometheus.Metric) {
	select {
	case <-p.elected:
	default:
		return // A standby operator reports nothing, so that the sum over all operators is right.
	}
	counts, awaiting := map[v1beta1.JobPhase]int{}, 0
	for _, o := range p.jobs.List() {
		job, ok := o.(*v1beta1.ElasticTrainingJob)
		if !ok {
			continue
		}
		phase := job.Status.Phase
		if phase == "" {
			phase = v1beta1.PhasePending
		}
		counts[phase]++
		if phase == v1beta1.PhasePending && job.Status.Reason == v1beta1.ReasonAwaitingApproval {
			awaiting++
		}
	}
	to <- prometheus.MustNewConstMetric(awaitingDesc, prometheus.GaugeValue, float64(awaiting))
	for _, phase := range []v1beta1.JobPhase{
		v1beta1.PhasePending, v1beta1.PhaseRunning, v1beta1.PhaseSuspended, v1beta1.PhaseSucceeded, v1beta1.PhaseFailed,
	} {
		to <- prometheus.MustNewConstMetric(jobsDesc, prometheus.GaugeValue, float64(counts[phase]), string(phase))
	}
}
