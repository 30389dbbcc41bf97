package collector

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
	"github.com/tideline-io/tideline/internal/usage/ledger"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// CountSizing counts what a written status says for the first time: how an attempt was sized, and which containers ran out of
// memory since. The task is that of the job.
func (c *Collector) CountSizing(kind, namespace, task string, before, after *v1beta1.SizingStatus, kills []sizing.OOMKill) {
	for i := range kills {
		k := &kills[i]
		c.OOMKilled(OOMKill{
			Pod: types.UID(k.Pod), Restarts: k.Restarts, LimitBytes: k.Limit,
			Key: sizing.Key{Namespace: namespace, Kind: kind, Task: task, Role: k.Part.Role, Container: k.Part.Container},
		})
	}
	if after == nil {
		return
	}
	fresh := before == nil || !before.Time.Equal(&after.Time)
	for i := range after.Resources {
		r := &after.Resources[i]
		if fresh {
			c.metrics.decisions.WithLabelValues(string(after.Mode), r.Resource, r.Reason).Inc()
		}
		if r.OOMKilledTime != nil && (before == nil || !wasKilled(before, r)) {
			c.metrics.rollBacks.Inc()
		}
	}
}

// recallKills counts kills that the status of jobs has and an operator that was killed did not record. Their memory limits
// are no longer known, so the containers get their full requests.
func (c *Collector) recallKills() {
	for _, store := range c.jobs {
		for _, o := range store.List() {
			switch job := o.(type) {
			case *v1beta1.ElasticTrainingJob:
				c.recallOf(sizing.Key{Namespace: job.Namespace, Kind: v1beta1.ElasticTrainingJobKind, Task: trainingpod.TaskOf(job)},
					job.UID, job.Status.Sizing)
			case *v1beta1.MergeJob:
				c.recallOf(sizing.Key{Namespace: job.Namespace, Kind: v1beta1.MergeJobKind, Task: job.Name}, job.UID, job.Status.Sizing)
			}
		}
	}
}

// recallOf counts those of a job, whose key is given but for role and container.
func (c *Collector) recallOf(key sizing.Key, job types.UID, st *v1beta1.SizingStatus) {
	if st == nil {
		return
	}
	for i := range st.Resources {
		r := &st.Resources[i]
		key.Role, key.Container = sizing.Role(r.Role), r.Container
		if r.OOMKilledTime != nil && !c.hasKill(key, r.OOMKilledTime.Time) {
			c.OOMKilled(OOMKill{Pod: job, Key: key, At: r.OOMKilledTime.Time, Restarts: int32(r.OOMKilledTime.Unix())})
		}
	}
}

// sameKill is the largest difference between the times of one kill by the kubelet and by the job's status.
const sameKill = time.Minute

// hasKill tells whether a kill of a container of that key at about that time is known.
func (c *Collector) hasKill(key sizing.Key, at time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := task{key.Namespace, key.Kind, key.Task}
	for _, known := range []map[string]ledger.OOMKill{c.memory.kills[of], c.told[of]} {
		for _, k := range known {
			if k.Part == partOf(key) && k.At.Sub(at).Abs() < sameKill {
				return true
			}
		}
	}
	return false
}

// wasKilled tells whether a status knew already that the container had run out of memory then.
func wasKilled(before *v1beta1.SizingStatus, now *v1beta1.SizedResource) bool {
	for i := range before.Resources {
		if r := &before.Resources[i]; r.Role == now.Role && r.Container == now.Container && r.Resource == now.Resource {
			return r.OOMKilledTime.Equal(now.OOMKilledTime)
		}
	}
	return false
}

// slack is what pods that run request beyond what their tasks' use calls for, as their jobs' status says. It is exported
// once elected is closed. A standby operator exports nothing, so that the sum over all operators is right.
type slack struct {
	desc              *prometheus.Desc
	trainings, merges toolscache.Store
	elected           <-chan struct{}
}

func newSlack(trainings, merges toolscache.Store, elected <-chan struct{}) *slack {
	return &slack{
		desc: prometheus.NewDesc("tideline_sizing_slack",
			"Requests of running pods beyond the result of sizing, in processors or bytes: still requested with mode "+
				"Recommend, released with mode Enforce.",
			[]string{"profile", "tier", "resource", "mode"}, nil),
		trainings: trainings, merges: merges, elected: elected,
	}
}

// Describe sends what the metric is.
func (s *slack) Describe(to chan<- *prometheus.Desc) { to <- s.desc }

// Collect sends the slack of all jobs.
func (s *slack) Collect(to chan<- prometheus.Metric) {
	select {
	case <-s.elected:
	default:
		return
	}
	sums := map[[4]string]float64{}
	for _, o := range s.trainings.List() {
		if job, ok := o.(*v1beta1.ElasticTrainingJob); ok && job.Status.RunningSince != nil {
			addSlack(sums, job.Status.Sizing, job.Status.Profile, job.Status.Tier, func(role sizing.Role) int32 {
				return trainingpod.CountRole(&job.Spec, role, job.Status.Replicas)
			})
		}
	}
	for _, o := range s.merges.List() {
		if job, ok := o.(*v1beta1.MergeJob); ok && job.Status.Run != nil && job.Status.Run.RunTime != nil {
			addSlack(sums, job.Status.Sizing, job.Status.Profile, job.Status.Tier, func(role sizing.Role) int32 {
				if role == sizing.Worker {
					return max(job.Status.Run.MinReplicas-1, 0)
				}
				return min(job.Status.Run.MinReplicas, 1)
			})
		}
	}
	for labels, sum := range sums {
		to <- prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, sum, labels[:]...)
	}
}

// addSlack adds the slack of a job. count is how many of its pods have a role.
func addSlack(
	sums map[[4]string]float64, st *v1beta1.SizingStatus, profile, tier string, count func(sizing.Role) int32,
) {
	if st == nil {
		return
	}
	for i := range st.Resources {
		r := &st.Resources[i]
		n := float64(count(sizing.Role(r.Role)))
		sums[[4]string{cmp.Or(profile, v1beta1.DefaultProfile), tier, r.Resource, string(st.Mode)}] +=
			n * (r.Requested.AsApproximateFloat64() - r.Sized.AsApproximateFloat64())
	}
}
