package elastictrainingjob

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/kube"
	"github.com/tideline-io/tideline/internal/training"
	"github.com/tideline-io/tideline/internal/training/describe"
	"github.com/tideline-io/tideline/internal/training/growth"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/losses"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/ledger/decisionlog"
)

// cached are jobs as the manager's cache keeps them.
func cached(jobs ...*v1beta1.ElasticTrainingJob) toolscache.Store {
	store := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	for _, job := range jobs {
		_ = store.Add(job)
	}
	return store
}

// clock stands still but for what a test lets pass.
type clock struct{ now time.Time }

func (c *clock) pass(d time.Duration) { c.now = c.now.Add(d) }

func newClock() *clock { return &clock{time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)} }

// metricsOf are metrics of an elected operator.
func metricsOf(c *clock, jobs toolscache.Store) *metrics {
	elected := make(chan struct{})
	close(elected)
	return newMetrics(config.DefaultTiers(), func() time.Time { return c.now }, jobs, unjudgedNow, elected)
}

// served is everything of ours that a scrape returns, in a registry that holds metrics to what they say they are.
func served(t *testing.T, m *metrics) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	NewWithT(t).Expect(registry.Register(m)).To(Succeed())
	NewWithT(t).Expect(registry.Register(kube.BuildInfo("1.2.3"))).To(Succeed())
	NewWithT(t).Expect(registry.Register(newSuspects(time.Now))).To(Succeed())
	return registry
}

// series are the labels of every series of a registry, by metric.
func series(t *testing.T, registry *prometheus.Registry) map[string][]map[string]string {
	t.Helper()
	families, err := registry.Gather()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	all := map[string][]map[string]string{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, pair := range metric.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			all[family.GetName()] = append(all[family.GetName()], labels)
		}
	}
	return all
}

func jobNamed(name string) *v1beta1.ElasticTrainingJob {
	return &v1beta1.ElasticTrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: name, UID: "u-1"}}
}

func TestMetricsKeepPrometheusRules(t *testing.T) {
	g := NewWithT(t)
	problems, err := testutil.GatherAndLint(served(t, metricsOf(newClock(), cached())))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(problems).To(BeEmpty())
}

func TestMetricsAgreeWithTheirPage(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile("../../docs/metrics.md")
	g.Expect(err).NotTo(HaveOccurred())
	page := string(content)
	registry := served(t, metricsOf(newClock(), cached()))
	families, err := registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, family := range families {
		name, labels := family.GetName(), []string{}
		names = append(names, name)
		for _, pair := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, pair.GetName())
		}
		row := regexp.MustCompile("(?m)^\\| `" + name + "` \\| ([a-z]+) \\| ([^|]*)\\| [^|]{20,} \\|$").
			FindStringSubmatch(page)
		g.Expect(row).NotTo(BeNil(), name)
		g.Expect(row[1]).To(Equal(strings.ToLower(family.GetType().String())), name)
		documented := regexp.MustCompile("[a-z_]+").FindAllString(row[2], -1)
		g.Expect(documented).To(ConsistOf(labels), name)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(tideline_[a-z_]+)` \\|").FindAllStringSubmatch(page, -1) {
		// Those of the other controllers, and of trainings, are held to the page there.
		others := regexp.MustCompile("^tideline_(merge|ledger|profile|usage|prometheus|sizing|cost_report|training|capacity)_")
		if !others.MatchString(row[1]) {
			g.Expect(names).To(ContainElement(row[1]), "only what there is")
		}
	}

	_, values, found := strings.Cut(page, "\n| label | values |\n")
	g.Expect(found).To(BeTrue())
	values, _, _ = strings.Cut(values, "\n\n")
	for name, all := range series(t, registry) {
		for _, labels := range all {
			for label, value := range labels {
				if !slices.Contains([]string{labelTier, "version", "go_version"}, label) {
					g.Expect(values).To(ContainSubstring("`"+value+"`"), "%s of %s", label, name)
				}
			}
		}
	}
}

func TestLabelsDoNotGrowWithUse(t *testing.T) {
	g := NewWithT(t)
	c := newClock()
	m := metricsOf(c, cached(jobNamed("a"), jobNamed("b")))
	registry := served(t, m)
	before := series(t, registry)
	use := func(n int) {
		job := jobNamed(fmt.Sprintf("job-%d", n))
		job.Namespace, job.Spec.Owner, job.Status.Queue = fmt.Sprintf("ns-%d", n), fmt.Sprintf("user-%d", n), fmt.Sprintf("queue-%d", n)
		job.Spec.Tier = []string{"", "exploratory", "small-traffic", "main-traffic", fmt.Sprintf("tier-%d", n)}[n%5]
		written := &status{Attempt: &v1beta1.AttemptStatus{Number: 1, MinReplicas: 1}, ReadyReplicas: 1, Accelerators: 1}
		m.holdGPUs(job, written, 0)
		measured := describe.Measures{
			Wait: ptr.To(time.Minute), Placement: ptr.To(time.Minute), Resizes: describe.ResizeCauses(),
			Evictions: map[string]int{}, Restarts: map[string]int{},
		}
		for _, reason := range losses.EvictionReasons() {
			measured.Evictions[reason] = n
		}
		for _, cause := range losses.RestartCauses() {
			measured.Restarts[cause] = n
		}
		m.addMeasures(job, measured)
		m.addOutage(job, time.Minute)
	}
	for n := range 200 {
		use(n)
	}
	c.pass(time.Minute)
	tiers := []string{"exploratory", "small-traffic", "main-traffic", noTier}
	for name, all := range series(t, registry) {
		if _, tiered := all[0][labelTier]; !tiered {
			g.Expect(all).To(ConsistOf(before[name]), name)
		}
		for _, labels := range all {
			if tier, tiered := labels[labelTier]; tiered {
				g.Expect(tiers).To(ContainElement(tier), name)
			}
		}
	}
	g.Expect(testutil.ToFloat64(m.restarts.WithLabelValues(losses.RestartOOM))).To(Equal(199 * 200 / 2.))
	problems, err := testutil.GatherAndLint(registry)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(problems).To(BeEmpty())
}

// seconds are the GPU-seconds of a tier, core and surplus.
func seconds(m *metrics, tier string) [2]float64 {
	m.gpus.Collect(make(chan prometheus.Metric, 100))
	a := m.gpus.tiers[tier]
	return [2]float64{a.coreSeconds, a.surplusSeconds}
}

func TestGPUSecondsRunOnBetweenWrites(t *testing.T) {
	g := NewWithT(t)
	c := newClock()
	m := metricsOf(c, cached())
	const tier, other = "exploratory", "main-traffic"
	a, b := client.ObjectKey{Namespace: "ads", Name: "a"}, client.ObjectKey{Namespace: "ads", Name: "b"}
	c.pass(time.Hour)
	g.Expect(seconds(m, tier)).To(Equal([2]float64{0, 0}), "nobody holds any")

	m.gpus.hold(a, holding{tier, 2, 6})
	c.pass(10 * time.Second)
	g.Expect(seconds(m, tier)).To(Equal([2]float64{20, 60}), "without a write")
	g.Expect(seconds(m, tier)).To(Equal([2]float64{20, 60}), "a scrape counts nothing itself")
	m.gpus.hold(a, holding{tier, 2, 6})
	m.gpus.hold(b, holding{other, 4, 0})
	c.pass(10 * time.Second)
	m.gpus.hold(a, holding{tier, 2, 1})
	c.pass(10 * time.Second)
	g.Expect(seconds(m, tier)).To(Equal([2]float64{60, 130}))
	g.Expect(seconds(m, other)).To(Equal([2]float64{80, 0}))

	m.forget(a)
	m.gpus.hold(b, holding{tier: other})
	c.pass(time.Hour)
	g.Expect(seconds(m, tier)).To(Equal([2]float64{60, 130}), "the job is gone")
	g.Expect(seconds(m, other)).To(Equal([2]float64{80, 0}), "the job is suspended")
	g.Expect(m.gpus.jobs).To(BeEmpty(), "nothing is remembered of them")

	m.gpus.hold(a, holding{tier, 1, 0})
	c.pass(-time.Hour)
	g.Expect(seconds(m, tier)).To(Equal([2]float64{60, 130}), "a counter does not go down")
	c.pass(time.Hour)
	g.Expect(seconds(m, tier)).To(Equal([2]float64{60, 130}), "and counts no time twice")
}

func TestJobsAreCountedByPhase(t *testing.T) {
	g := NewWithT(t)
	var jobs []*v1beta1.ElasticTrainingJob
	for i, phase := range []v1beta1.JobPhase{"", v1beta1.PhasePending, v1beta1.PhaseRunning, v1beta1.PhaseFailed} {
		job := jobNamed(fmt.Sprintf("a-%d", i))
		job.Status.Phase = phase
		jobs = append(jobs, job)
	}
	jobs[1].Status.Reason = v1beta1.ReasonAwaitingApproval

	m := metricsOf(newClock(), cached(jobs...))
	g.Expect(testutil.CollectAndCompare(m.phases, strings.NewReader(`# HELP tideline_jobs `+
		`Jobs by status.phase. Jobs that the operator has not looked at yet count as Pending.
# TYPE tideline_jobs gauge
tideline_jobs{phase="Failed"} 1
tideline_jobs{phase="Pending"} 2
tideline_jobs{phase="Running"} 1
tideline_jobs{phase="Succeeded"} 0
tideline_jobs{phase="Suspended"} 0
# HELP tideline_jobs_awaiting_approval Jobs that wait for approval of their tier. They count as Pending too.
# TYPE tideline_jobs_awaiting_approval gauge
tideline_jobs_awaiting_approval 1
`))).To(Succeed())

	m.phases.elected = make(chan struct{})
	g.Expect(testutil.CollectAndCount(m.phases)).To(BeZero(), "who stands by counts no jobs")
}

// reconcilerOf writes statuses by a client that answers a write so.
func reconcilerOf(job *v1beta1.ElasticTrainingJob, c *clock, answer *error) *Reconciler {
	scheme := runtime.NewScheme()
	_ = v1beta1.AddToScheme(scheme)
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(job).WithStatusSubresource(job)
	builder.WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(
		ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption,
	) error {
		if *answer != nil {
			return *answer
		}
		return c.SubResource(sub).Patch(ctx, o, patch, options...)
	}})
	built := builder.Build()
	return &Reconciler{
		Dependencies: Dependencies{Journal: &journal{}}, client: built, recorder: events.NewFakeRecorder(100),
		children: children{kube.Applier{Creator: kube.Creator{Client: built, Live: built}, Writes: kube.NewWrites(nil, scheme)}},
		pacer:    kube.NewPacer(), memory: newMemory(), outages: newOutages(), metrics: metricsOf(c, cached()),
	}
}

// journal keeps what it is told.
type journal []ledger.Decision

func (j *journal) Decided(d ledger.Decision) { *j = append(*j, d) }

func (j *journal) StayIn(queue string) growth.Stay {
	if queue == "ads" {
		return growth.Stay{Held: time.Hour, Left: 3}
	}
	return growth.Stay{}
}

func (j *journal) NoteTraining(ledger.Trained) {}

func (j *journal) RecallSuspects() (held []ledger.Decision, known bool) { return nil, true }

func (j *journal) OutageOf(namespace, task string) (time.Duration, bool) {
	if namespace == "ads" && task == "clicks" {
		return 42 * time.Second, true
	}
	return 0, false
}

func (j *journal) SpeedsOf(namespace, task string) []v1beta1.MeasuredSpeed {
	if namespace == "ads" && task == "clicks" {
		return []v1beta1.MeasuredSpeed{{Workers: 8, PercentPerHour: "12.5"}}
	}
	return nil
}

func TestATransitionIsCountedOnceItIsWritten(t *testing.T) {
	g := NewWithT(t)
	c, job := newClock(), jobNamed("ctr")
	conflict := error(apierrors.NewConflict(v1beta1.GroupVersion.WithResource("elastictrainingjobs").GroupResource(), "ctr", nil))
	r := reconcilerOf(job, c, &conflict)
	g.Expect(r.client.Get(t.Context(), client.ObjectKeyFromObject(job), job)).To(Succeed())
	running := metav1.NewTime(c.now)
	d := training.Decision{
		Status: status{
			Phase: v1beta1.PhaseRunning, StartTime: &running, RunningSince: &running, WaitSeconds: ptr.To[int64](7), Restarts: 1,
			Attempt:       &v1beta1.AttemptStatus{Number: 1, StartTime: metav1.NewTime(c.now.Add(-4 * time.Second)), MinReplicas: 2},
			ReadyReplicas: 2, Accelerators: 2,
		},
		Losses: []losses.Loss{{Restarts: 1, Cause: losses.RestartOOM}},
	}
	report := func() {
		_, err := r.report(t.Context(), jobstate.Observed{Job: job}, d, nil, c.now)
		g.Expect(err).NotTo(HaveOccurred())
		c.pass(time.Minute)
	}
	counted := func() [2]float64 {
		restarts := r.metrics.restarts.WithLabelValues(losses.RestartOOM)
		return [2]float64{testutil.ToFloat64(restarts), seconds(r.metrics, "exploratory")[0]}
	}
	report()
	g.Expect(counted()).To(Equal([2]float64{0, 0}), "the write was refused")
	g.Expect(r.Journal).To(HaveValue(BeEmpty()), "nothing is told that is not written")
	conflict = nil
	report()
	g.Expect(counted()).To(Equal([2]float64{1, 120}))
	g.Expect(r.client.Get(t.Context(), client.ObjectKeyFromObject(job), job)).To(Succeed())
	d.Status, d.Losses = *job.Status.DeepCopy(), nil
	report()
	g.Expect(counted()).To(Equal([2]float64{1, 240}), "at rest time is all that passes")
	g.Expect(r.Journal).To(HaveValue(HaveExactElements(HaveField("Kind", decisionlog.Ran))), "it is told once")

	restarted := reconcilerOf(job, c, &conflict)
	c.pass(time.Hour)
	restarted.metrics, r = metricsOf(c, cached()), restarted
	report()
	g.Expect(counted()).To(Equal([2]float64{0, 120}), "from the first look on")
}

// BenchmarkScrape is a scrape with 10,000 jobs in the cache.
func BenchmarkScrape(b *testing.B) {
	jobs := make([]*v1beta1.ElasticTrainingJob, 10_000)
	for i := range jobs {
		jobs[i] = jobNamed(fmt.Sprintf("a-%d", i))
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metricsOf(newClock(), cached(jobs...)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := registry.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}

func unjudgedNow() map[string]int { return map[string]int{capacity.DeviceClaims: 3} }

func TestUnjudgedGangsAreCountedByWhatTheyAskFor(t *testing.T) {
	g := NewWithT(t)
	g.Expect(testutil.GatherAndCount(served(t, metricsOf(newClock(), cached())), "tideline_unjudged_gangs")).
		To(Equal(len(capacity.ListUnmodelled())), "each from the start")
	g.Expect(series(t, served(t, metricsOf(newClock(), cached())))["tideline_unjudged_gangs"]).
		To(ContainElement(map[string]string{labelAsks: capacity.DeviceClaims}))
}
