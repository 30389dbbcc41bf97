package training

import (
	"cmp"
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/jobstate"
)

// CheckpointRequest is what worker 0's pod is to be told.
type CheckpointRequest struct {
	UID types.UID
	// Value of annotation tideline.io/checkpoint-requested.
	Value string
}

// What a checkpoint is asked for.
const (
	forShrink, forStop, forRestart, forEviction = "Shrink", "Stop", "Restart", "Eviction"
)

// ensureCheckpoint has worker 0 save a checkpoint before workers leave, and reports whether they may: at once without a grace or
// while no core trains, and otherwise when worker 0 has saved or the grace has passed. A checkpoint requested for another reason
// does not count; it may be stale. If several departures fall into one evaluation, the first requests for all.
func (p *planner) ensureCheckpoint(what string) (ready bool) {
	grace, master := p.CheckpointGrace(), p.At[0]
	if grace == 0 || p.Status.RunningSince == nil || master == nil || !master.Running() {
		return true
	}
	if p.departing {
		what = p.Status.Checkpoint.For
	}
	p.departing = true
	c := p.Status.Checkpoint
	if c == nil || (c.For != what && what != forEviction) {
		p.Status.Checkpoint = &v1alpha1.CheckpointStatus{For: what, RequestTime: p.Time(), Number: nextRequest(p.State, master)}
		p.wake(grace)
		return false
	}
	c.For = what // What it was asked for has happened, and only those are left who leave on the word of others.
	left := c.RequestTime.Add(grace).Sub(p.Now)
	if left <= 0 || master.CheckpointDone >= requestNumber(c) {
		return true
	}
	p.wake(left)
	return false
}

// nextRequest is the number of a request: above the second that has begun, in which worker 0 may have saved before, and above
// what it was asked with or said before, because the clock of its node may be ahead of ours.
func nextRequest(s *jobstate.State, master *podstate.Worker) int64 {
	last := max(s.Now.Unix(), master.CheckpointRequested, master.CheckpointDone)
	if c := s.Status.Checkpoint; c != nil {
		last = max(last, requestNumber(c))
	}
	return min(last, math.MaxInt64-1) + 1
}

// requestNumber is the number of a request that is in status. An operator that did not know the field wrote none.
func requestNumber(c *v1alpha1.CheckpointStatus) int64 { return cmp.Or(c.Number, c.RequestTime.Unix()) }

// watchDepartures asks for a checkpoint as well when others told workers to leave: surplus trains on for its grace, and a drained
// core worker for as long as it takes to end.
func (p *planner) watchDepartures() {
	for w := range p.AttemptWorkers() {
		if w.Terminating && w.Phase == corev1.PodRunning && p.RecordedLost(w) {
			p.ensureCheckpoint(forEviction)
		}
	}
}

// tellCheckpoint notes who leaves on the word of others, passes a request on once it is in status, and closes it when nobody is
// about to leave any more.
func (p *planner) tellCheckpoint() {
	p.watchDepartures()
	if p.Status.Checkpoint == nil {
		return
	}
	if !p.departing {
		p.Status.Checkpoint = nil
		return
	}
	written, master := p.Job.Status.Checkpoint, p.At[0]
	if written == nil || master == nil || master.Terminating || master.CheckpointRequested >= requestNumber(written) {
		return
	}
	p.d.RequestCheckpoint = &CheckpointRequest{UID: master.UID, Value: strconv.FormatInt(requestNumber(written), 10)}
}
