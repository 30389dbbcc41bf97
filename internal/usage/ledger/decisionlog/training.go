package decisionlog

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/losses"
	"github.com/tideline-io/tideline/internal/training/trainingpod"
	"github.com/tideline-io/tideline/internal/usage/ledger"
)

// TrainingDecisions returns what was decided about a training from one written status to the next: from an empty one, all that
// the second still tells of. It is called after the second was written, and again for what may not have been kept.
func TrainingDecisions(
	job *v1beta1.ElasticTrainingJob, before, after *v1beta1.ElasticTrainingJobStatus, now time.Time,
) []ledger.Decision {
	fresh := newDecisions(ofTraining(job, before), ofTraining(job, after), isObstructed(before.Conditions), now)
	if before.Attempt == nil {
		return fresh // Nothing could leave or be measured since, or what the job was like before is not known.
	}
	for i := range fresh {
		switch d := &fresh[i]; d.Kind {
		case GaveWay:
			d.Figures[Left] = formatNumber(countLeft(before, after))
		case OutageMeasured:
			if now.After(d.At) {
				d.At = now // The status has no time of it.
			}
		}
	}
	return fresh
}

// countLeft counts the workers that gave way and had trained before: the others only stopped waiting for room.
func countLeft(before, after *v1beta1.ElasticTrainingJobStatus) int {
	n := 0
	for _, i := range after.Elasticity.Evicted {
		if before.Elasticity.HasEvicted(i) {
			continue
		}
		at, known := slices.BinarySearchFunc(before.Members, i, func(m v1beta1.Member, i int32) int { return int(m.Index - i) })
		if known && !before.Members[at].IsLost() {
			n++
		}
	}
	return n
}

func ofTraining(job *v1beta1.ElasticTrainingJob, st *v1beta1.ElasticTrainingJobStatus) []ledger.Decision {
	t := &telling{job: job, position: st.Place, figures: map[string]string{
		Object: v1beta1.ElasticTrainingJobKind, Queue: st.Queue, Profile: st.Profile, "tier": st.Tier,
		Task: trainingpod.TaskOf(job), User: job.Annotations[v1beta1.AnnotationOwner],
	}}
	attempt := int32(0)
	if a := st.Attempt; a != nil {
		attempt, t.attempt = a.Number, a.ID()
		t.figures[Workers] = fmt.Sprintf("%d..%d", a.MinReplicas, a.MaxReplicas)
	}
	if st.CompletionTime == nil {
		t.addWait(st.Conditions, formatNumber(attempt))
	}
	t.addAttempts(st)
	t.addDepartures(st)
	t.addOutage(st)
	t.addSpeeds(st)
	if end := st.CompletionTime; end != nil {
		t.addDecision(*end, Ended, timeID(*end), ledger.Decision{Reason: st.Reason, Message: st.Message},
			"phase", string(st.Phase), "restarts", formatNumber(st.Restarts))
	}
	return t.decided
}

// addAttempts tells of how a training began, stopped and went on.
func (t *telling) addAttempts(st *v1beta1.ElasticTrainingJobStatus) {
	if a := st.Attempt; a != nil && a.Number > 1 {
		t.addDecision(a.StartTime, WentOn, t.attempt, ledger.Decision{
			Message: fmt.Sprintf("Attempt %d began, with %d..%d workers.", a.Number, a.MinReplicas, a.MaxReplicas),
		})
	}
	if a, since := st.Attempt, st.RunningSince; a != nil && since != nil {
		waited, from := since.Sub(a.StartTime.Time), fmt.Sprintf("the beginning of attempt %d", a.Number)
		if st.WaitSeconds != nil && since.Equal(st.StartTime) {
			waited, from = time.Duration(*st.WaitSeconds)*time.Second, "submission"
		}
		t.addDecision(*since, Ran, t.attempt, ledger.Decision{
			Message: fmt.Sprintf("The core of %d began to run in queue %s, %s after %s.", a.MinReplicas, st.Queue,
				waited.Round(time.Second), from),
		}, WaitedSeconds, formatNumber(int64(waited.Seconds())))
	}
	if left := st.LeftInVain; left != nil {
		t.addDecision(left.Time, LeftInVain, timeID(left.Time), ledger.Decision{
			Reason: v1beta1.ReasonNotPlaced, Other: left.For.String(),
			Message: fmt.Sprintf("%d workers had left for %s, which was not placed in time; they take their room back.",
				left.Workers, left.For),
		}, Workers, formatNumber(left.Workers))
	}
	if p := st.Preemption; p != nil {
		t.addDecision(p.Since, Preempted, timeID(p.Since), ledger.Decision{
			Reason: v1beta1.ReasonPreempted, Other: p.By.String(),
			Message: fmt.Sprintf("It was stopped for %s of tier %s.", p.By, p.Tier),
		}, "tierOfOther", p.Tier)
	}
	c := meta.FindStatusCondition(st.Conditions, v1beta1.ConditionSuspended)
	suspended := c != nil && c.Status == metav1.ConditionTrue
	if p := st.Preemption; suspended && p != nil && p.LostSince != nil {
		worked := c.LastTransitionTime.Sub(p.LostSince.Time)
		t.addDecision(c.LastTransitionTime, Stopped, timeID(p.Since), ledger.Decision{
			Reason: v1beta1.ReasonPreempted, Other: p.By.String(),
			Message: fmt.Sprintf("Tideline deleted its pods; the work of %s since its last checkpoint is lost.",
				max(0, worked).Round(time.Second)),
		}, lostFigures(p.LostSince)...)
	}
	if suspended && st.Preemption == nil {
		t.addDecision(c.LastTransitionTime, Suspended, timeID(c.LastTransitionTime), ledger.Decision{Reason: c.Reason,
			Message: c.Message})
	}
}

// addDepartures tells of workers that left or were lost.
func (t *telling) addDepartures(st *v1beta1.ElasticTrainingJobStatus) {
	if e := st.Elasticity; e != nil && e.LastEvictionTime != nil {
		to := cmp.Or(losses.GangServed(e), "a gang that Volcano does not name")
		t.addDecision(*e.LastEvictionTime, GaveWay, timeID(*e.LastEvictionTime), ledger.Decision{
			Reason: e.LastEvictionReason, Other: losses.GangServed(e),
			Message: fmt.Sprintf("Surplus left for %s (%s); %d workers are away, %d are ready.", to, e.LastEvictionReason, len(e.Evicted),
				st.ReadyReplicas),
		}, "away", formatNumber(len(e.Evicted)), "ready", formatNumber(st.ReadyReplicas))
	}
	if f := st.LastFailure; f != nil && st.Restarts > 0 {
		t.addDecision(f.Time, Restarted, formatNumber(st.Restarts), ledger.Decision{
			Reason:  cmp.Or(f.Reason, v1beta1.ReasonWorkerFailed),
			Message: fmt.Sprintf("Worker %d was lost, which counted as restart %d. %s", f.Worker, st.Restarts, f.Message),
		}, append(lostFigures(f.LostSince), "worker", formatNumber(f.Worker), "exitCode", formatNumber(f.ExitCode))...)
	}
}

// addOutage tells how long changes of size keep the training from progress. A value that comes back is kept once: what was
// measured last then differs from what is kept by as much as one measurement moves it.
func (t *telling) addOutage(st *v1beta1.ElasticTrainingJobStatus) {
	e := st.Elasticity
	if e == nil || e.OutageSeconds == 0 {
		return
	}
	at := t.job.GetCreationTimestamp()
	for _, resized := range []*metav1.Time{st.StartTime, e.LastGrowthTime, e.LastEvictionTime} {
		if resized != nil && resized.After(at.Time) {
			at = *resized
		}
	}
	seconds := formatNumber(e.OutageSeconds)
	t.addDecision(at, OutageMeasured, seconds, ledger.Decision{
		Message: fmt.Sprintf("A change of its size keeps the training from progress for %s.",
			time.Duration(e.OutageSeconds)*time.Second),
	}, Seconds, seconds)
}

// addSpeeds tells how fast the training goes with how many workers.
func (t *telling) addSpeeds(st *v1beta1.ElasticTrainingJobStatus) {
	if st.Elasticity == nil {
		return
	}
	for _, s := range st.Elasticity.Speeds {
		if created := t.job.GetCreationTimestamp(); s.Time.Before(&created) {
			continue // An earlier job of the task measured it.
		}
		workers := formatNumber(s.Workers)
		t.addDecision(s.Time, SpeedMeasured, workers+" "+timeID(s.Time), ledger.Decision{
			Message: fmt.Sprintf("With %d workers the training does %s %% of its steps in an hour.", s.Workers, s.PercentPerHour),
		}, Workers, workers, PercentPerHour, s.PercentPerHour)
	}
}
