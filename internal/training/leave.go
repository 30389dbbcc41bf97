package training

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/losses"
)

// leaver is a planner while it has workers leave.
type leaver struct{ *planner }

// giveWay has the surplus leave that the arbiter named, in two steps that survive a restart of the operator between them:
//
//	named by the verdict -> [checkpoint] -> recorded as lost in status -> deleted
func (l *leaver) giveWay() {
	for w := range l.AttemptWorkers() {
		if !l.IsSurplus(w.Index) || w.HasEnded() {
			continue
		}
		if l.RecordedLost(w) {
			// The verdict may have changed since, but a worker that is recorded as lost is no member any more.
			l.deleteWorker(w)
			continue
		}
		if !l.IsNamed(w) || l.IsLost(w) {
			continue // A worker that Volcano or a drain evicted is recorded with that reason already.
		}
		if w.IsRunning() {
			// Only a worker that trains has peers whose work is lost when it goes.
			if ready := l.ensureCheckpoint(forShrink); !ready {
				continue
			}
		}
		l.books.ReleaseWorker(w, gangServed(l.State))
	}
}

// gangServed is the gang that the surplus leaves for; nil for the core of its own job.
func gangServed(s *jobstate.State) *v1beta1.GangRef {
	to := s.Verdict.To
	if to.Namespace == s.Job.Namespace && to.Name == s.Job.Name {
		return nil
	}
	return ptr.To(v1beta1.RefTo(to))
}

// takeRoomBack has surplus that left for a gang return without its cooldown if that gang was not placed in time: the cooldown
// would keep the training from room that serves no other job.
func (l *leaver) takeRoomBack() {
	e := l.Status.Elasticity
	if e == nil || len(e.Evicted) == 0 || e.LastEvictionReason != losses.Told || e.GaveWayTo == nil ||
		!l.InVain(*e.GaveWayTo) {
		return
	}
	if vain := l.Status.LeftInVain; vain == nil || vain.For != *e.GaveWayTo || vain.Time.Before(e.LastEvictionTime) {
		l.Status.LeftInVain = &v1beta1.LeftInVain{For: *e.GaveWayTo, Time: l.StatusTime(), Workers: int32(len(e.Evicted))}
	}
	if len(l.Verdict.GiveUp) > 0 {
		return // Another gang needs room now: what came back would only have to leave again.
	}
	l.dropMembers(func(i int32) bool { return l.IsEvicted(i) && l.At[i] == nil && !l.HasLeft(i) })
	losses.ReleaseEvicted(l.Status, func(int32) bool { return true })
	// That it left may have counted as a loss of what the job had just gained, and served no gang.
	e.NextGrowthTime, e.QuickLosses = nil, max(0, e.QuickLosses-1)
}

// shrinkToMaximum deletes the workers beyond maxReplicas: those without a node first, then the highest index.
func (l *leaver) shrinkToMaximum() {
	if e := l.Status.Elasticity; e != nil {
		e.Aim = min(e.Aim, l.Wanted)
	}
	var beyond []*podstate.Worker
	for w := range l.AttemptWorkers() {
		if w.Index >= l.Maximum {
			beyond = append(beyond, w)
		}
	}
	slices.SortFunc(beyond, func(a, b *podstate.Worker) int {
		return cmp.Or(cmp.Compare(boolToInt(a.Scheduled), boolToInt(b.Scheduled)), cmp.Compare(b.Index, a.Index))
	})
	if slices.ContainsFunc(beyond, func(w *podstate.Worker) bool { return w.IsRunning() && l.RecordedMember(w) }) {
		if ready := l.ensureCheckpoint(forShrink); !ready {
			return
		}
	}
	for _, w := range beyond {
		// A member is first dropped from the planned status, below, and deleted once that is written: until then its end would
		// count as a loss.
		if gaveWay := l.RecordedLost(w) && !w.HasEnded(); !l.RecordedMember(w) && !gaveWay {
			l.deleteWorker(w)
		}
	}
	l.dropMembers(func(i int32) bool { return i >= l.Maximum })
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// replaceFailed deletes pods that failed, are stranded, or leave their node, so that workers of their names can be created. It
// waits until the loss is in status, because the pod is its evidence, and until the worker's back-off is over.
func (l *leaver) replaceFailed() {
	for i := range l.Maximum {
		w := l.At[i]
		if w == nil || !w.HasEnded() && !l.leavesNode(w) || w.Terminating || !l.RecordedLost(w) || l.RecordedLeft(w) || l.HasLeft(i) ||
			l.HasTrained(w) {
			continue
		}
		if wait := retryWait(l.State, i); wait > 0 && w.Disruption == "" {
			l.requeueAfter(wait) // An evicted pod says nothing against a retry, so it does not wait.
			continue
		}
		l.deleteWorker(w)
	}
}

// leavesNode is true for a worker that runs and is recorded as lost, because it failed in place on a node that the job avoids.
func (l *leaver) leavesNode(w *podstate.Worker) bool {
	return w.IsRunning() && w.Disruption == "" && slices.ContainsFunc(l.Job.Status.AvoidedNodes, func(n v1beta1.AvoidedNode) bool {
		return n.Name == w.Node && n.Failed
	})
}

// retryWait is how much longer a lost worker's pod stays before it is replaced; zero or less if it need not. Where status has no
// room for the worker's back-off, the earliest that it has counts: the one left out was no later.
func retryWait(s *jobstate.State, i int32) time.Duration {
	retries := s.Status.Retries
	r, known := s.Status.RetryOf(i)
	if !known {
		if len(retries) < v1beta1.MaxRetries {
			return 0
		}
		r = slices.MinFunc(retries, func(a, b v1beta1.Retry) int { return a.Time.Compare(b.Time.Time) })
	}
	return r.Time.Sub(s.Now)
}

// releaseNodes deletes waiting workers that avoid a node which may be used again. The affinity of a pod cannot be changed, so the
// worker is created again without it.
func (l *leaver) releaseNodes() {
	own := podstate.AvoidedBy(&l.Spec.Template.Spec)
	for w := range l.AttemptWorkers() {
		if !w.Scheduled && slices.ContainsFunc(l.Job.Status.AvoidedNodes, func(n v1beta1.AvoidedNode) bool {
			return n.Until == nil && slices.Contains(w.Avoids, n.Name) && !slices.Contains(own, n.Name)
		}) {
			l.deleteWorker(w)
		}
	}
}

// deleteStrays deletes pods of earlier attempts: they would wait for ever in the rendezvous of theirs.
func (l *leaver) deleteStrays() {
	for _, w := range l.Strays {
		l.deleteWorker(w)
	}
}

// deleteWorker deletes a pod once, though two phases may ask for it. Its grace period is capped at capacity.LongestLeave: the
// model counts on the room by then, and worker 0 was asked to save before.
func (p *planner) deleteWorker(w *podstate.Worker) {
	if !w.Terminating && !p.deleting[w.UID] {
		p.deleting[w.UID] = true
		gone := *w
		gone.GraceSeconds = capacity.CapGrace(w.GraceSeconds)
		p.d.DeletePods = append(p.d.DeletePods, gone)
	}
}

// dropMembers takes workers out of the status that the job gave up on purpose or whose cooldown is over, so that their return
// counts as growth and not as a loss mended.
func (p *planner) dropMembers(drop func(int32) bool) {
	p.Status.DropMembers(drop)
	losses.ReleaseEvicted(p.Status, drop)
}
