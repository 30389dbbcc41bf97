package resourcequotaprofile

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/kube"
)

// Labels of the metrics of profiles.
const labelProfile, labelState, labelReason = "profile", "state", "reason"

// Values of labelState. Only what waits has a reason.
const stateRunning, stateWaiting = "running", "waiting"

// notebooksStopped counts since the operator started.
var notebooksStopped = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "tideline_profile_notebooks_stopped_total",
	Help: "Notebooks of a profile's namespaces that the operator stopped because they did not use their accelerators.",
}, []string{labelProfile})

var (
	resourcesDesc = prometheus.NewDesc("tideline_profile_resources",
		"What a profile's queue has and uses, in cores, bytes and devices; kind is used, deserved, capability, borrowed or lent.",
		[]string{labelProfile, "resource", "kind"}, nil)
	acceleratorsDesc = prometheus.NewDesc("tideline_profile_accelerators",
		"Accelerators that pods of a tier hold in a profile's namespaces.", []string{labelProfile, "tier"}, nil)
	profileJobsDesc = prometheus.NewDesc("tideline_profile_jobs",
		"Trainings and merges of a profile that run, or wait for what the reason in their status says.",
		[]string{labelProfile, labelState, labelReason}, nil)
	overBudgetDesc = prometheus.NewDesc("tideline_profile_users_over_budget",
		"Users of a profile who have used up a budget.", []string{labelProfile}, nil)
)

// metrics tell of profiles what their status says, and of their jobs what theirs says, when they are asked.
type metrics struct {
	profiles, trainings, merges toolscache.Store
	elected                     <-chan struct{}
}

// registerMetrics registers the metrics of profiles, of what the manager's cache has.
func registerMetrics(ctx context.Context, mgr ctrl.Manager) error {
	m := &metrics{elected: mgr.Elected()}
	for _, kind := range []struct {
		object client.Object
		store  *toolscache.Store
	}{
		{&v1beta1.ResourceQuotaProfile{}, &m.profiles},
		{&v1beta1.ElasticTrainingJob{}, &m.trainings},
		{&v1beta1.MergeJob{}, &m.merges},
	} {
		store, err := kube.StoreOf(ctx, mgr.GetCache(), kind.object)
		if err != nil {
			return err
		}
		*kind.store = store
	}
	if err := errors.Join(ctrlmetrics.Registry.Register(m), ctrlmetrics.Registry.Register(notebooksStopped)); err != nil {
		return fmt.Errorf("register the metrics of profiles: %w", err)
	}
	return nil
}

// Describe sends the descriptions of the metrics.
func (*metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{resourcesDesc, acceleratorsDesc, profileJobsDesc, overBudgetDesc} {
		to <- d
	}
}

// Collect sends the figures of all profiles; nothing from an operator that stands by.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	select {
	case <-m.elected:
	default:
		return
	}
	running := map[string]int{}
	for _, o := range m.profiles.List() {
		if p, ok := o.(*v1beta1.ResourceQuotaProfile); ok {
			collectProfile(to, p)
			running[p.Name] = 0
		}
	}
	m.collectJobs(to, running)
}

// waiting is what jobs of a profile wait for.
type waiting struct{ profile, reason string }

// collectJobs counts jobs where they are in the cache, so that no count can drift from what there is. A profile that
// running names has a figure even if it runs nothing.
func (m *metrics) collectJobs(to chan<- prometheus.Metric, running map[string]int) {
	held := map[waiting]int{}
	count := func(stands standing, of waiting) {
		switch stands {
		case runs:
			running[of.profile]++
		case waits, awaitsApproval:
			held[of]++
		}
	}
	for _, o := range m.trainings.List() {
		job, ok := o.(*v1beta1.ElasticTrainingJob)
		if ok {
			count(standingOfTraining(job), waiting{job.Status.Profile, job.Status.Reason})
		}
	}
	for _, o := range m.merges.List() {
		if job, ok := o.(*v1beta1.MergeJob); ok {
			count(standingOfMerge(job), waiting{job.Status.Profile, job.Status.Reason})
		}
	}
	gauge := func(n int, labels ...string) {
		to <- prometheus.MustNewConstMetric(profileJobsDesc, prometheus.GaugeValue, float64(n), labels...)
	}
	for profile, n := range running {
		gauge(n, profile, stateRunning, "")
	}
	for of, n := range held {
		gauge(n, of.profile, stateWaiting, of.reason)
	}
}

func collectProfile(to chan<- prometheus.Metric, p *v1beta1.ResourceQuotaProfile) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{p.Name}, labels...)...)
	}
	st := &p.Status
	for kind, list := range map[string]corev1.ResourceList{
		"used": st.Used, "deserved": st.Deserved, "capability": p.Spec.Queue.Capability, "borrowed": st.Borrowed, "lent": st.Lent,
	} {
		for name, quantity := range list {
			gauge(resourcesDesc, quantity.AsApproximateFloat64(), string(name), kind)
		}
	}
	for _, t := range st.Tiers {
		if held, err := strconv.ParseFloat(t.Held, 64); err == nil {
			gauge(acceleratorsDesc, held, t.Name)
		}
	}
	gauge(overBudgetDesc, float64(len(st.OverBudget)))
}
