package merging

import (
	"time"

	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// Measures are what a written status adds to the operator's metrics.
type Measures struct {
	// Attempt is true when the merge asked for its place.
	Attempt bool
	// Wait is from joining the line until all pods ran, and Run from then until the run ended; nil for none.
	Wait, Run *time.Duration
	// Outcome of a run that ended; empty for none.
	Outcome v1beta1.MergeOutcome
}

// MeasureChange compares one written status with the next.
func MeasureChange(before, after *v1beta1.MergeJobStatus) Measures {
	var m Measures
	if run := after.Run; run != nil {
		was := before.Run
		again := was == nil || was.ID != run.ID || was.Attempt != run.Attempt
		m.Attempt = again
		if run.RunTime != nil && (again || was.RunTime == nil) && after.QueueTime != nil {
			m.Wait = ptr.To(run.RunTime.Sub(after.QueueTime.Time))
		}
	}
	if ended := EndedRun(before, after); ended != nil {
		m.Outcome = ended.Outcome
		if ended.StartTime != nil {
			m.Run = ptr.To(ended.EndTime.Sub(ended.StartTime.Time))
		}
	}
	return m
}

// Ages are figures of a merge that grow with time alone.
type Ages struct {
	// Full is the age of the newest full model or, where there is none, of the MergeJob.
	Full time.Duration
	// Increment is the age of the newest increment; nil before one was seen.
	Increment *time.Duration
	// Interval is the age at which the full model is due; zero without an interval or a cron line.
	Interval time.Duration
	// Head is how long the merge has asked for its place; nil for one that does not ask.
	Head *time.Duration
}

// AgesOf computes the ages of a MergeJob.
func AgesOf(job *v1beta1.MergeJob, now time.Time) Ages {
	a, st := Ages{Full: now.Sub(job.CreationTimestamp.Time)}, &job.Status
	if st.LastFull != nil {
		a.Full = now.Sub(st.LastFull.Time.Time)
	}
	if st.NewestIncrementTime != nil {
		a.Increment = ptr.To(now.Sub(st.NewestIncrementTime.Time))
	}
	if job.Spec.Schedule != nil {
		t := facts{spec: &job.Spec, st: st}
		if _, interval, ok := t.fullModelAge(); ok {
			a.Interval = interval
		} else if job.Spec.Schedule.Interval != nil {
			a.Interval = job.Spec.Schedule.Interval.Duration
		}
	}
	if run := st.Run; run != nil && run.Outcome == "" && run.PlaceTime == nil && run.Ahead == nil {
		a.Head = ptr.To(now.Sub(run.AskTime.Time))
	}
	return a
}
