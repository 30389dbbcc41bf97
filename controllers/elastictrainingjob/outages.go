package elastictrainingjob

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/growth"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

// mostMeters bounds how many trainings are measured at a time: about 5 MB. Beyond it further ones keep their default.
const mostMeters = 20_000

// outages measure for how long changes of size keep trainings from progress. A restart of the operator loses what is not measured
// to its end, and nothing else: status has the rest.
type outages struct {
	mu   sync.Mutex
	jobs map[types.NamespacedName]*measured
}

// measured is a job that may grow, in one attempt.
type measured struct {
	job     types.UID
	attempt string
	meter   growth.Meter
	// written is how many of the meter's measurements status has.
	written int
}

func newOutages() *outages { return &outages{jobs: map[types.NamespacedName]*measured{}} }

// read returns what was measured of a job and is not in its status yet; zero for nothing. From its first call in an attempt on
// the job is measured, if it can change its size.
func (o *outages) read(job *v1beta1.ElasticTrainingJob) (outage time.Duration, measurements int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key, st := client.ObjectKeyFromObject(job), &job.Status
	m := o.jobs[key]
	switch {
	case !canGrow(job) || st.Attempt == nil || jobstate.IsStopped(st) || jobstate.IsFinished(st):
		delete(o.jobs, key)
	case m != nil && m.job == job.UID && m.attempt == st.Attempt.ID():
		if last, n := m.meter.Outage(); n > m.written {
			return last, n
		}
	case m != nil || len(o.jobs) < mostMeters:
		// Each attempt has a meter of its own: the time between two of them is not the cost of a change of size.
		o.jobs[key] = &measured{job: job.UID, attempt: st.Attempt.ID()}
	}
	return 0, 0
}

// canGrow is true for a job that may have surplus.
func canGrow(job *v1beta1.ElasticTrainingJob) bool {
	return job.Spec.MinReplicas < job.Spec.MaxReplicas
}

// noteProgress notes that worker 0 of an attempt reported progress. It returns true if that ended a measurement.
func (o *outages) noteProgress(
	job types.NamespacedName, uid types.UID, attempt string, progress int64, now time.Time,
) (ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m := o.jobs[job]
	if m == nil || m.job != uid || m.attempt != attempt {
		return false
	}
	_, before := m.meter.Outage()
	m.meter.NoteProgress(progress, now)
	_, after := m.meter.Outage()
	return after > before
}

// noteWrite notes that the job's status has these measurements, and whether the job changed its size with it. It returns true for
// the first time that status has them.
func (o *outages) noteWrite(job *v1beta1.ElasticTrainingJob, measurements int, resized bool, now time.Time) (fresh bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	m := o.jobs[client.ObjectKeyFromObject(job)]
	if m == nil || m.job != job.UID {
		return false
	}
	fresh = measurements > m.written
	m.written = max(m.written, measurements)
	if resized {
		m.meter.NoteChange(now)
	}
	return fresh
}

func (o *outages) forget(job types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.jobs, job)
}
