package losses

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/platform/text"
)

const (
	// sameFailureWindow is how close together two equal failures must be for a third one to be taken as certain.
	sameFailureWindow = 10 * time.Minute
	// incidentWindow is how long after a restart the first restart of each other worker belongs to the same incident. When worker 0
	// is lost, its store dies with it and every agent exits; which of them is noticed first is chance.
	incidentWindow = time.Minute
	// FirstBackoff and LongestBackoff bound how long a failed pod stays, as evidence and as a brake, before it is replaced.
	FirstBackoff, LongestBackoff = 10 * time.Second, 5 * time.Minute
)

// recordLoss writes a loss into the planned status.
func (b *Books) recordLoss(l *loss, m *member, r ruling) {
	b.noteFailure(l)
	if l.inPlace {
		b.recordRestart(l, m, r)
		return
	}
	if l.counted {
		b.Growth().NoteRestart()
		if l.index == 0 {
			b.newIncident() // Its peers restart because of it, within the incident's window.
		}
		b.countRestarts(l, r, 1, m.retry.Failures > 0)
	}
	if l.rejected {
		b.recordRejection(l, m)
		b.noteRejection(l.index)
	} else {
		m.retry.Rejections = 0
	}
	if !l.rejected && l.failure != (podstate.Failure{}) && !r.starved {
		if b.progressed || b.Now.Sub(m.retry.Time.Time) > sameFailureWindow {
			m.retry.Failures = 0
		}
		m.retry.Failures++
		m.retry.Time = metav1.NewTime(b.Now.Add(BackoffAfter(m.retry.Failures)).Truncate(time.Second))
	}
	if l.eviction != "" {
		b.recordEviction(l)
	}
	if l.disruption != "" {
		b.noteEviction(l.index, l.disruption)
	}
}

// recordRestart counts containers that restarted in place. The first restarts of different workers in one incident count as one
// restart of the job; a second restart of one worker counts by itself, because nothing that happens once restarts it twice.
func (b *Books) recordRestart(l *loss, m *member, r ruling) {
	if m.UID != l.uid {
		m.succeed(l.index, l.uid)
	}
	b.Growth().NoteRestart()
	restarts, again := b.At[l.index].ContainerRestarts-m.Restarts, m.Restarts > 0
	m.Restarts = b.At[l.index].ContainerRestarts
	m.setStranded(false)
	if i := b.Status.Incident; i != nil && m.incident < i.Number && b.Now.Sub(i.Time.Time) <= incidentWindow {
		restarts--
	} else {
		b.newIncident()
	}
	m.incident = b.Status.Incident.Number
	if restarts > 0 {
		b.countRestarts(l, r, restarts, again)
	}
}

func (b *Books) newIncident() {
	next := v1beta1.Incident{Number: 1, Time: b.StatusTime()}
	if b.Status.Incident != nil {
		next.Number += b.Status.Incident.Number
	}
	b.Status.Incident = &next
}

// recordEviction notes that surplus gave way, from which its cooldown is measured.
func (b *Books) recordEviction(l *loss) {
	// Status keeps whole seconds; rounding up keeps the cooldown from being shorter than asked.
	b.Growth().NoteEviction(metav1.NewTime(b.Now.Add(time.Second - time.Nanosecond).Truncate(time.Second)))
	e := b.Status.Elasticity
	if at, known := slices.BinarySearch(e.Evicted, l.index); !known {
		e.Evicted = slices.Insert(e.Evicted, at, l.index)
	}
	e.GaveWayTo = nil // ReleaseWorker sets it for an eviction by the operator.
	e.LastEvictionReason = text.ClipLine(l.eviction, 256)
}

// countRestarts counts restarts against the budget, and fails the job if the budget is spent or the same failure comes twice.
// again is true if the worker has failed before; for workers that start anew together it does not matter which of them has.
func (b *Books) countRestarts(l *loss, r ruling, restarts int32, again bool) {
	b.noteProgress(l.progress)
	if r.starved {
		return // Sizing caused it, not the job.
	}
	if r.gang {
		if b.gangCounted {
			return // All start anew once, however many of them failed together.
		}
		b.gangCounted, again = true, true // Who of them fails first is chance, and the next attempt has other pods.
	}
	before := b.Job.Status.LastFailure
	b.Status.Restarts += restarts
	b.noteRestarts(l, restarts)
	b.Status.LastFailure = &v1beta1.WorkerFailure{
		Worker: l.index, Time: b.StatusTime(), ExitCode: l.failure.ExitCode,
		Reason: text.ClipLine(l.oneWord(), 256), Message: text.ClipLine(l.failure.LastLine(), 1024), InPlace: l.inPlace,
		LostSince: b.LostSince(),
	}
	limit := ptr.Deref(b.Spec.Restarts.Max, v1beta1.DefaultMaxRestarts)
	b.Status.RestartTimes = slices.DeleteFunc(b.Status.RestartTimes, func(t metav1.Time) bool {
		return !t.Add(b.restartWindow()).After(b.Now)
	})
	// One beyond the limit ends the job, so the list needs no more.
	for range min(restarts, limit+1-int32(len(b.Status.RestartTimes))) {
		b.Status.RestartTimes = append(b.Status.RestartTimes, b.StatusTime())
	}
	if n := len(b.Status.RestartTimes); n > int(limit) {
		b.leadTo(Outcome{v1beta1.ActionFailJob, v1beta1.ReasonTooManyRestarts, fmt.Sprintf(
			"%d restarts within %s are more than restarts.max (%d) allows. The last: %s.",
			n, b.restartWindow(), limit, l.describeLoss())})
	}
	// A rule of the user's that says to continue is trusted more: its author knows this failure.
	if r.rule == "" && again && before != nil && !b.progressed && sameFailure(before, b.Status.LastFailure) &&
		b.Now.Sub(before.Time.Time) < sameFailureWindow {
		b.leadTo(Outcome{v1beta1.ActionFailJob, v1beta1.ReasonSameFailureTwice, fmt.Sprintf(
			"The same failure happened twice within %s, without progress in between: %s.", sameFailureWindow, l.describeLoss())})
	}
}

// noteProgress clears the restart budget if the training has reported progress. It runs only when a restart is counted: a
// training may report every step, and to write each to status would cost a write per step.
func (b *Books) noteProgress(reported int64) {
	if master := b.At[0]; master != nil {
		reported = max(reported, master.Progress)
	}
	if b.Trained != nil {
		reported = max(reported, b.Trained.Step)
	}
	if reported <= b.Status.Progress {
		return
	}
	b.Status.Progress, b.Status.RestartTimes = reported, nil
	b.Status.LastFailure = nil
	b.progressed = true
}

func (b *Books) restartWindow() time.Duration {
	return time.Duration(ptr.Deref(b.Spec.Restarts.WindowSeconds, v1beta1.DefaultRestartWindowSeconds)) * time.Second
}

// sameFailure is true for failures with equal messages, exit codes and reasons. Numbers in messages are ignored, because they may
// be times, ranks or addresses. A failure without a message is never the same: exit code 1 is what every Python exception gives.
func sameFailure(a, b *v1beta1.WorkerFailure) bool {
	return a.Message != "" && numbers.ReplaceAllString(a.Message, "#") == numbers.ReplaceAllString(b.Message, "#") &&
		a.ExitCode == b.ExitCode && a.Reason == b.Reason
}

var numbers = regexp.MustCompile(`(0x)?[0-9][0-9a-f]*`)

// BackoffAfter is how long a pod that failed for the nth time in a row stays before it is replaced: FirstBackoff, doubled with
// each failure up to LongestBackoff.
func BackoffAfter(failures int32) time.Duration {
	d := FirstBackoff
	for range failures - 1 {
		if d *= 2; d > LongestBackoff {
			return LongestBackoff
		}
	}
	return d
}
