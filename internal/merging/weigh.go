package merging

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/schedule"
)

// The weight of a merge, in points:
//
//	weight = 100 × max(age ÷ interval, increments ÷ schedule.increments) + min(perIncrement × increments + boost, 1000)
//
// age is the time since the newest full model, interval the time that the schedule leaves between two, and either may be absent.
// A merge is due once its weight reaches spec.threshold. From then on the factor of its tier multiplies the first term, which
// orders the line only, and increments count there for 100 at most: what they gave grows with the wait instead.

// atInterval is the weight of a full model that is as old as the schedule's interval, or that does not exist.
const atInterval = 100

// maxExtra bounds what increments and boost add. So age decides in the end, and no merge waits for ever.
const maxExtra = 1000

// withoutInterval is the time in which a merge that is due at once, and has no interval, gains what others gain in theirs.
const withoutInterval = 24 * time.Hour

// computeWeight computes the weight, whether the merge is due, and when it will be. The tier counts only once the merge is
// due: it orders the line and makes no merge due earlier.
func (t *merge) computeWeight() {
	t.st.DueTime = nil
	if !t.storeRead() {
		t.st.Weight = nil
		return
	}
	threshold := float64(ptr.Deref(t.spec.Threshold, v1beta1.DefaultMergeThreshold))
	extra := min(float64(t.spec.Weight.PerIncrement)*float64(t.st.Increments)+float64(t.spec.Weight.Boost), maxExtra)
	full, interval, aged := t.fullModelAge()
	atOnce := !aged && !t.spec.Schedule.IsByIncrements()
	if atOnce {
		full, interval = t.ageFromWait()
	}
	age, written := 0.0, t.weightOfIncrements()
	if aged || atOnce {
		age = atInterval * max(t.p.now.Sub(full), 0).Seconds() / interval.Seconds()
	}
	if missing := (threshold - extra) / atInterval; aged && missing > 0 {
		// The API server keeps whole seconds. Rounded up, because a merge that wakes up too early would find itself not due.
		t.st.DueTime = timePointer(full.Add(time.Duration(missing*float64(interval)) + time.Second - 1))
	}
	t.order = max(age, written) + extra
	arrived := t.st.DueTime != nil && !t.p.now.Before(t.st.DueTime.Time)
	if t.due = t.order >= threshold || arrived || atOnce || t.calledByHand(); t.due {
		if t.spec.Schedule != nil && t.spec.Schedule.Increments != nil {
			age = max(age, min(written, atInterval)+t.gainedByWait())
		}
		t.order = age*float64(t.p.o.Config.Tiers.MergeFactor(t.st.Tier)) + extra
	}
	t.st.Weight = ptr.To(int64(math.Floor(t.order)))
}

// weightOfIncrements is what the increments that wait add by the schedule's own number of them; 0 without one.
func (t *facts) weightOfIncrements() float64 {
	if s := t.spec.Schedule; s != nil && s.Increments != nil {
		return atInterval * float64(t.st.Increments) / float64(max(*s.Increments, 1))
	}
	return 0
}

// gainedByWait is the weight that a merge has gained in the line.
func (t *state) gainedByWait() float64 {
	full, interval := t.ageFromWait()
	return atInterval * (max(t.p.now.Sub(full), 0).Seconds()/interval.Seconds() - 1)
}

// fullModelAge is when the newest full model was made, or counts as made, and the time from then until the next is due. It is
// false for a merge without a full model or without a schedule, which is due at once.
func (t *facts) fullModelAge() (full time.Time, interval time.Duration, ok bool) {
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
	// A cron line has no interval, so the distance between its next two times counts as one. The age then starts one interval before
	// the next time, so that a full model that came late gains weight as fast as one that came in time.
	interval = max(line.Next(next).Sub(next), time.Second)
	return next.Add(-interval), interval, true
}

// ageFromWait replaces the age of a merge that is due at once. Its full model counts as one interval old when it joined the line,
// so that its weight grows while it waits.
func (t *state) ageFromWait() (full time.Time, interval time.Duration) {
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
func (t *facts) storeRead() bool { return t.fresh != nil || t.st.Weight != nil }

// calledByHand tells whether annotation run-now has a value for which no run began yet.
func (t *facts) calledByHand() bool {
	token := t.job.Object.Annotations[v1beta1.AnnotationRunNow]
	return token != "" && clip(token, runNowLimit) != t.st.RunNow
}

// runNowLimit is how much of the annotation's value the status keeps.
const runNowLimit = 256

// isDone tells whether a merge without a schedule has merged.
func (t *facts) isDone() bool {
	return t.spec.Schedule == nil && t.st.MergeTime != nil && !t.calledByHand()
}

// metaTime is a time as the API server keeps it.
func metaTime(at time.Time) metav1.Time { return metav1.NewTime(at).Rfc3339Copy() }

func timePointer(at time.Time) *metav1.Time { return ptr.To(metaTime(at)) }
