package training

import (
	"cmp"
	"math"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/gang"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

// Before workers leave, worker 0 saves, in steps that survive a restart of the operator between any two:
//
//	a phase wants workers to leave -> status.checkpoint {for, number} is written -> annotation on worker 0's pod
//	-> worker 0 answers with the number, or the grace passes -> they leave -> status.checkpoint is closed
//
// Worker 0 saves too when surplus is about to join. The surplus does not wait for it.

// CheckpointRequest asks worker 0 to save a checkpoint, by an annotation on its pod.
type CheckpointRequest struct {
	// UID of the pod, so that a pod created since is not asked.
	UID types.UID
	// Value of annotation tideline.io/checkpoint-requested: the number of the request.
	Value string
}

// Why a checkpoint is requested, as status.checkpoint.for says it.
const (
	forShrink, forStop, forRestart, forEviction, forGrowth = "Shrink", "Stop", "Restart", "Eviction", "Growth"
)

// ensureCheckpoint has worker 0 save a checkpoint before workers leave, and reports whether they may: at once without a grace or
// while no core trains, and otherwise when worker 0 has saved or the grace has passed. A checkpoint requested for another reason
// does not count; it may be stale. If several departures fall into one evaluation, the first requests for all.
func (p *planner) ensureCheckpoint(what string) (ready bool) {
	s := &saver{p}
	if !s.canSave() {
		return true
	}
	if p.departing {
		what = p.Status.Checkpoint.For // One checkpoint serves all departures of this evaluation.
	}
	p.departing = true
	c := p.Status.Checkpoint
	// A request for another reason is not reused, except for evictions: those workers leave whether or not a new one is made. One
	// for growth may have been answered long ago.
	if c == nil || c.For != what && (what != forEviction || c.For == forGrowth && s.isSettled(c)) {
		s.requestCheckpoint(what)
		return false
	}
	c.For = what
	if s.isSettled(c) {
		return true
	}
	p.requeueAfter(c.RequestTime.Add(p.CheckpointGrace()).Sub(p.Now))
	return false
}

// saver is a planner while it has worker 0 save checkpoints.
type saver struct{ *planner }

// canSave is true if worker 0 can be asked for a checkpoint.
func (s *saver) canSave() bool {
	master := s.At[0]
	return s.CheckpointGrace() > 0 && s.Status.RunningSince != nil && master != nil && master.IsRunning()
}

// isSettled is true once worker 0 has saved, or the grace has passed.
func (s *saver) isSettled(c *v1beta1.CheckpointStatus) bool {
	return s.At[0].CheckpointDone >= requestNumber(c) || !c.RequestTime.Add(s.CheckpointGrace()).After(s.Now)
}

func (s *saver) requestCheckpoint(what string) {
	s.Status.Checkpoint = &v1beta1.CheckpointStatus{For: what, RequestTime: s.StatusTime(), Number: nextRequest(s.State, s.At[0])}
	s.requeueAfter(s.CheckpointGrace())
}

// nextRequest returns the number of a new request. It is a time in seconds, but above the current second, in which worker 0 may
// have saved already, and above every number that worker 0 was sent or answered, because its node's clock may be ahead of ours.
func nextRequest(s *jobstate.State, master *podstate.Worker) int64 {
	last := max(s.Now.Unix(), master.CheckpointRequested, master.CheckpointDone)
	if c := s.Status.Checkpoint; c != nil {
		last = max(last, requestNumber(c))
	}
	// The user's program writes annotations, so the largest number may be there already.
	return min(last, math.MaxInt64-1) + 1
}

// requestNumber is the number of a request that is in status. Operators before the field existed used the time alone.
func requestNumber(c *v1beta1.CheckpointStatus) int64 { return cmp.Or(c.Number, c.RequestTime.Unix()) }

// tellOfCheckpoint adds to a PodGroup when the training last saved.
func (p *planner) tellOfCheckpoint(state *gang.State, g gang.Group) gang.Group {
	if until := p.CheckpointAhead(); until > 0 {
		p.requeueAfter(until)
	}
	return g.WithCheckpoint(p.CheckpointTime(), state)
}

// watchDepartures requests a checkpoint for workers that Volcano, a drain or a user has evicted. They still train until their
// grace period ends, so worker 0 can save work that would otherwise be lost.
func (s *saver) watchDepartures() {
	for w := range s.AttemptWorkers() {
		if w.Terminating && w.Phase == corev1.PodRunning && s.RecordedLost(w) {
			s.ensureCheckpoint(forEviction)
		}
	}
}

// prepareArrival requests a checkpoint before surplus joins, because all workers then go back to the last one. last is when the
// last of that surplus got its node. Surplus does not wait: it takes longer to start than worker 0 to notice the request.
func (s *saver) prepareArrival(last time.Time) {
	c := s.Status.Checkpoint
	// What came in one step shares a checkpoint, and whoever saves is not asked again before it has. A time to come is another
	// clock's, and no reason to ask again and again.
	outdated := c != nil && s.isSettled(c) && !last.After(s.Now) && last.Sub(c.RequestTime.Time) > s.Growth().StepTime()
	if c == nil || c.For != forGrowth || outdated {
		s.requestCheckpoint(forGrowth)
	}
}

// lastArrival is when the last surplus got its node that is about to join; zero for none.
func (s *saver) lastArrival() (last time.Time) {
	for w := range s.AttemptWorkers() {
		leaves := w.Terminating || w.Index >= s.Maximum || s.IsLost(w) || s.RecordedLost(w) || s.deleting[w.UID]
		if s.IsSurplus(w.Index) && w.Scheduled && w.Phase == corev1.PodPending && !leaves && w.BoundTime.After(last) {
			last = w.BoundTime.Time
		}
	}
	return last
}

// tellCheckpoint passes a request on to worker 0, and closes it once no worker is about to leave or join. The request must be in
// status first: an operator that restarts in between then repeats the same number instead of asking again.
func (s *saver) tellCheckpoint() {
	s.watchDepartures()
	restart, last, c := s.Growth().RestartLeft(), s.lastArrival(), s.Status.Checkpoint
	switch {
	case s.departing:
	case last.IsZero() && s.canSave() && s.Growth().StepLeft() > 0 && c != nil && c.For == forGrowth:
		s.requeueAfter(s.Growth().StepLeft()) // More of the step may still get nodes, and shares the checkpoint.
	case last.IsZero() || !s.canSave():
		s.Status.Checkpoint = nil
	case restart > 0:
		s.Status.Checkpoint = nil // There is little to lose yet.
		s.requeueAfter(restart)
	default:
		s.prepareArrival(last)
	}
	written, master := s.Job.Status.Checkpoint, s.At[0]
	if s.Status.Checkpoint == nil || written == nil || master == nil || master.Terminating ||
		master.CheckpointRequested >= requestNumber(written) {
		return
	}
	s.d.RequestCheckpoint = &CheckpointRequest{UID: master.UID, Value: strconv.FormatInt(requestNumber(written), 10)}
}
