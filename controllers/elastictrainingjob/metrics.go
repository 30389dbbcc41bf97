package elastictrainingjob

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/training/describe"
	"github.com/tideline-io/tideline/internal/training/losses"
)

// Labels have few values that are known beforehand: tiers are those of the operator's configuration, everything else is
// listed in internal/training. Jobs, namespaces, users and queues are no labels.
const (
	labelTier, labelCause, labelReason, labelRole, labelPhase = "tier", "cause", "reason", "role", "phase"

	roleCore, roleSurplus = "core", "surplus"
	// noTier is the tier of a job whose own is not, or no longer, in the configuration.
	noTier = "unknown"
)

// waitBuckets are the upper bounds, in seconds, by which waits are counted: from a cluster with free room to a week's queue.
var waitBuckets = []float64{
	1, 5, 15, 30, 60, 2 * 60, 5 * 60, 10 * 60, 30 * 60, 3600, 2 * 3600, 4 * 3600, 12 * 3600, 24 * 3600, 3 * 24 * 3600, 7 * 24 * 3600,
}

// metrics are the figures over all jobs that Prometheus reads (docs/metrics.md). Counters begin at zero with the process;
// what is told by a status write is counted after that write succeeded, so it is never counted twice.
type metrics struct {
	tiers                        config.Tiers
	wait, placement              *prometheus.HistogramVec
	resizes, evictions, restarts *prometheus.CounterVec
	inVain                       *prometheus.CounterVec
	gpus                         *gpuTime
	phases                       *phases
}

// newMetrics returns metrics of the jobs in a store, which are counted once elected is closed: an operator that stands by
// counts none, so that the sum over all operators is right.
func newMetrics(tiers config.Tiers, now func() time.Time, jobs toolscache.Store, elected <-chan struct{}) *metrics {
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: waitBuckets}, []string{labelTier})
	}
	counter := func(name, help, label string, values []string) *prometheus.CounterVec {
		vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
		for _, value := range values {
			vec.WithLabelValues(value) // A rate needs the zero before the first.
		}
		return vec
	}
	m := &metrics{
		tiers: tiers,
		wait: histogram("tideline_job_wait_seconds",
			"Time from a job's creation until its core first ran; once for each job."),
		placement: histogram("tideline_job_placement_seconds",
			"Time from the beginning of an attempt until Volcano had placed its whole core; once for each attempt whose core ran."),
		resizes: counter("tideline_job_resizes_total",
			"Changes of the size of running trainings, by cause.", labelCause, describe.ResizeCauses()),
		evictions: counter("tideline_evictions_total",
			"Workers that were taken away from jobs by no fault of theirs, by reason.", labelReason, losses.EvictionReasons()),
		inVain: counter("tideline_evictions_in_vain_total",
			"Workers that left for a gang that was not placed in time, by why they left.", labelReason,
			[]string{losses.EvictionTold, losses.EvictionPreempted}),
		restarts: counter("tideline_restarts_total",
			"Restarts that jobs count against runPolicy.maxRestarts, by cause.", labelCause, losses.RestartCauses()),
		gpus:   newGPUTime(tiers, now),
		phases: &phases{jobs: jobs, elected: elected},
	}
	for _, tier := range tiers {
		m.wait.WithLabelValues(tier.Name)
		m.placement.WithLabelValues(tier.Name)
	}
	return m
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.wait, m.placement, m.resizes, m.evictions, m.inVain, m.restarts, m.gpus, m.phases}
}

// Describe sends what the metrics are.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(to)
	}
}

// Collect sends the metrics as they are.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.collectors() {
		c.Collect(to)
	}
}

// count adds what one written status told of a job.
func (m *metrics) count(job *v1alpha1.ElasticTrainingJob, measured describe.Measures) {
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

// hold notes what GPUs a job holds by the status that the API server has now.
func (m *metrics) hold(job *v1alpha1.ElasticTrainingJob, written *status) {
	core, surplus := describe.HeldGPUs(job, written)
	m.gpus.hold(client.ObjectKeyFromObject(job), holding{tier: m.tierOf(job), core: core, surplus: surplus})
}

// forget notes that a job is gone.
func (m *metrics) forget(job types.NamespacedName) { m.gpus.hold(job, holding{}) }

func (m *metrics) tierOf(job *v1alpha1.ElasticTrainingJob) string {
	if tier, ok := m.tiers.InEffect(job.Spec.Tier, job.Status.Tier); ok {
		return tier.Name
	}
	return noTier
}

// gpuTime counts GPU-seconds: the integral over time of the GPUs that jobs hold. Time is this process's own monotonic
// clock, and runs on between status writes, of which a job at rest has none. A scrape costs the same for any number of jobs.
type gpuTime struct {
	desc *prometheus.Desc
	now  func() time.Time

	mu    sync.Mutex
	jobs  map[types.NamespacedName]holding // of those that hold any
	tiers map[string]*account
}

// holding are the GPUs that a job holds.
type holding struct {
	tier          string
	core, surplus int64
}

// account is what the jobs of a tier hold since a time, and what they held until then.
type account struct {
	core, surplus               int64
	since                       time.Time
	coreSeconds, surplusSeconds float64
}

func newGPUTime(tiers config.Tiers, now func() time.Time) *gpuTime {
	g := &gpuTime{
		desc: prometheus.NewDesc("tideline_gpu_seconds_total",
			"Time that GPUs were held by ready workers, in GPU-seconds: of the core and of the surplus of jobs, by tier.",
			[]string{labelRole, labelTier}, nil),
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
	g.book(held.tier, -held.core, -held.surplus)
	g.book(h.tier, h.core, h.surplus)
	if h == (holding{}) {
		delete(g.jobs, job)
	} else {
		g.jobs[job] = h
	}
}

// book changes what a tier holds from now on; it does nothing for no tier.
func (g *gpuTime) book(tier string, core, surplus int64) {
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

// settle adds up to a time what was held until then. A time before the last one changes nothing.
func (a *account) settle(now time.Time) {
	if now.Before(a.since) {
		return
	}
	seconds := now.Sub(a.since).Seconds()
	a.coreSeconds += float64(a.core) * seconds
	a.surplusSeconds += float64(a.surplus) * seconds
	a.since = now
}

// Describe sends what the metric is.
func (g *gpuTime) Describe(to chan<- *prometheus.Desc) { to <- g.desc }

// Collect sends the GPU-seconds until now.
func (g *gpuTime) Collect(to chan<- prometheus.Metric) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for tier, a := range g.tiers {
		a.settle(g.now())
		to <- prometheus.MustNewConstMetric(g.desc, prometheus.CounterValue, a.coreSeconds, roleCore, tier)
		to <- prometheus.MustNewConstMetric(g.desc, prometheus.CounterValue, a.surplusSeconds, roleSurplus, tier)
	}
}

var jobsDesc = prometheus.NewDesc("tideline_jobs",
	"Jobs by phase, as their status says; those that nobody has looked at yet count as Pending.", []string{labelPhase}, nil)

var awaitingDesc = prometheus.NewDesc("tideline_jobs_awaiting_approval",
	"Jobs that wait for somebody to approve their tier; they count as Pending too.", nil, nil)

// phases counts the jobs in the manager's cache when it is asked, so that no count can drift from what there is. It reads them
// where they are: a list by the client would copy the specs of all.
type phases struct {
	jobs    toolscache.Store
	elected <-chan struct{}
}

// Describe sends what the metrics are.
func (*phases) Describe(to chan<- *prometheus.Desc) { to <- jobsDesc; to <- awaitingDesc }

// Collect sends the number of jobs in each phase, and of those that await approval; nothing from an operator that stands by.
func (p *phases) Collect(to chan<- prometheus.Metric) {
	select {
	case <-p.elected:
	default:
		return
	}
	counts, awaiting := map[v1alpha1.JobPhase]int{}, 0
	for _, o := range p.jobs.List() {
		job, ok := o.(*v1alpha1.ElasticTrainingJob)
		if !ok || job.Spec.RunPolicy.ManagedBy == v1alpha1.ManagedByMultiKueue {
			continue // Another cluster runs it, and counts it.
		}
		phase := job.Status.Phase
		if phase == "" {
			phase = v1alpha1.PhasePending
		}
		counts[phase]++
		if phase == v1alpha1.PhasePending && job.Status.Reason == v1alpha1.ReasonAwaitingApproval {
			awaiting++
		}
	}
	to <- prometheus.MustNewConstMetric(awaitingDesc, prometheus.GaugeValue, float64(awaiting))
	for _, phase := range []v1alpha1.JobPhase{
		v1alpha1.PhasePending, v1alpha1.PhaseRunning, v1alpha1.PhaseSuspended, v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed,
	} {
		to <- prometheus.MustNewConstMetric(jobsDesc, prometheus.GaugeValue, float64(counts[phase]), string(phase))
	}
}
