package resourcequotaprofile

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/tideline-io/tideline/api/v1alpha1"
)

// Labels of the metrics of profiles.
const labelProfile = "profile"

var (
	resourcesDesc = prometheus.NewDesc("tideline_profile_resources",
		"What a profile's queue has and uses, in cores, bytes and devices; kind is used, deserved, capability, borrowed or lent.",
		[]string{labelProfile, "resource", "kind"}, nil)
	acceleratorsDesc = prometheus.NewDesc("tideline_profile_accelerators",
		"Accelerators that pods of a tier hold in a profile's namespaces.", []string{labelProfile, "tier"}, nil)
	profileJobsDesc = prometheus.NewDesc("tideline_profile_jobs",
		"Trainings and merges of a profile; state is running, waiting or awaiting-approval.", []string{labelProfile, "state"}, nil)
	overBudgetDesc = prometheus.NewDesc("tideline_profile_users_over_budget",
		"Users of a profile who have used up a budget.", []string{labelProfile}, nil)
)

// metrics tell of profiles what their status says, when they are asked.
type metrics struct {
	profiles toolscache.Store
	elected  <-chan struct{}
}

// Describe sends what the metrics are.
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
	for _, o := range m.profiles.List() {
		if p, ok := o.(*v1alpha1.ResourceQuotaProfile); ok {
			collect(to, p)
		}
	}
}

func collect(to chan<- prometheus.Metric, p *v1alpha1.ResourceQuotaProfile) {
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
		gauge(acceleratorsDesc, float64(t.Accelerators), t.Name)
	}
	gauge(profileJobsDesc, float64(st.Running), "running")
	gauge(profileJobsDesc, float64(st.Waiting), "waiting")
	gauge(profileJobsDesc, float64(st.AwaitingApproval), "awaiting-approval")
	gauge(overBudgetDesc, float64(len(st.OverBudget)))
}
