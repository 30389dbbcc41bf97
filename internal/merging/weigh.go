package merging

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/schedule"
)

// atInterval is the weight of a full model that is as old as the schedule's interval, or that does not exist.
const atInterval = 100

// maxExtra bounds what increments and boost add, so that age goes before everything in the end.
const maxExtra = 1000

// withoutInterval is the time in which a merge that is due at once, and has no interval, gains what others gain in theirs.
const withoutInterval = 24 * time.Hour

// weigh says how heavy the merge is, whether it is due, and when it will be. The tier counts from when the merge is due: it
// orders the line, and makes nobody due earlier.
func (t *merge) weigh() {
	t.st.DueTime = nil
	if !t.storeRead() {
		t.st.Weight = nil
		return
	}
	threshold := float64(ptr.Deref(t.spec.Threshold, v1alpha1.DefaultMergeThreshold))
	extra := min(float64(t.spec.Weight.PerIncrement)*float64(t.st.Increments)+float64(t.spec.Weight.Boost), maxExtra)
	full, interval, aged := t.age()
	if !aged {
		full, interval = t.waits()
	}
	age := atInterval * max(t.p.now.Sub(full), 0).Seconds() / interval.Seconds()
	if missing := (threshold - extra) / atInterval; aged && missing > 0 {
		// In whole seconds, as the API server keeps it, and never before the weight is reached.
		t.st.DueTime = timePointer(full.Add(time.Duration(missing*float64(interval)) + time.Second - 1))
	}
	t.order = age + extra
	arrived := t.st.DueTime != nil && !t.p.now.Before(t.st.DueTime.Time)
	if t.due = t.order >= threshold || arrived || !aged || t.calledByHand(); t.due {
		t.order = age*float64(t.p.o.Config.Tiers.MergeFactor(t.st.Tier)) + extra
	}
	t.st.Weight = ptr.To(int64(math.Floor(t.order)))
}

// age is when the newest full model was made, or counts as made, and the time from then until it is due again. It is false for
// a merge that is due at once, because there is no full model, or no schedule.
func (t *state) age() (full time.Time, interval time.Duration, ok bool) {
	if t.st.LastFull == nil || t.spec.Schedule == nil {
		return time.Time{}, 0, false
	}
	full = t.st.LastFull.Time.Time
	if t.spec.Schedule.Interval != nil {
		return full, max(t.spec.Schedule.Interval.Duration, time.Second), true
	}
	line, err := schedule.Parse(t.spec.Schedule.Cron, t.spec.Schedule.TimeZone)
	if err != nil {
		return time.Time{}, 0, false // findObstacle says what is wrong.
	}
	next := line.Next(full)
	if next.IsZero() {
		return time.Time{}, 0, false
	}
	// From the time of the schedule before the next, or what stands for it: it gains weight as fast however late the full model is.
	interval = max(line.Next(next).Sub(next), time.Second)
	return next.Add(-interval), interval, true
}

// waits stands in for the age of a merge that is due at once, so that it grows while the merge waits in the line: its full model
// counts as one interval old when it joined.
func (t *state) waits() (full time.Time, interval time.Duration) {
	interval, joined := withoutInterval, t.p.now
	if s := t.spec.Schedule; s != nil && s.Interval != nil {
		interval = max(s.Interval.Duration, time.Second)
	}
	if t.st.QueueTime != nil {
		joined = t.st.QueueTime.Time
	}
	return joined.Add(-interval), interval
}

// storeRead tells whether the store was read, by this process or one before it.
func (t *state) storeRead() bool { return t.fresh != nil || t.st.Weight != nil }

// calledByHand tells whether annotation run-now has a value that was not obeyed yet.
func (t *state) calledByHand() bool {
	token := t.job.Object.Annotations[v1alpha1.AnnotationRunNow]
	return token != "" && clip(token, runNowLimit) != t.st.RunNow
}

// runNowLimit is how much of the annotation's value the status keeps.
const runNowLimit = 256

// done tells of a merge without a schedule that has merged.
func (t *state) done() bool {
	return t.spec.Schedule == nil && t.st.MergeTime != nil && !t.calledByHand()
}

// metaTime is a time as the API server keeps it.
func metaTime(at time.Time) metav1.Time { return metav1.NewTime(at).Rfc3339Copy() }

func timePointer(at time.Time) *metav1.Time { return ptr.To(metaTime(at)) }

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
