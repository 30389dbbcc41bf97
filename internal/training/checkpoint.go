package training

import (
	"cmp"
	"math"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
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

// saved tells whether workers may leave: at once without a grace or when nobody trains, and otherwise when worker 0 has saved a
// checkpoint, which it is asked for, or the grace has passed. A checkpoint that was asked for something else is none for this: it
// may be long ago. Of several departures in one evaluation the first asks for all.
func (p *planner) saved(what string) bool {
	grace, master := p.checkpointGrace(), p.at[0]
	if grace == 0 || p.st.RunningSince == nil || master == nil || !master.Running() {
		return true
	}
	if p.departing {
		what = p.st.Checkpoint.For
	}
	p.departing = true
	c := p.st.Checkpoint
	if c == nil || (c.For != what && what != forEviction) {
		p.st.Checkpoint = &v1alpha1.CheckpointStatus{For: what, RequestTime: p.time(), Number: p.nextRequest(master)}
		p.wake(grace)
		return false
	}
	c.For = what // What it was asked for has happened, and only those are left who leave on the word of others.
	left := c.RequestTime.Add(grace).Sub(p.now)
	if left <= 0 || master.CheckpointDone >= requestNumber(c) {
		return true
	}
	p.wake(left)
	return false
}

// nextRequest is the number of a request: above the second that has begun, in which worker 0 may have saved before, and above
// what it was asked with or said before, because the clock of its node may be ahead of ours.
func (p *planner) nextRequest(master *podstate.Worker) int64 {
	last := max(p.now.Unix(), master.CheckpointRequested, master.CheckpointDone)
	if c := p.st.Checkpoint; c != nil {
		last = max(last, requestNumber(c))
	}
	return min(last, math.MaxInt64-1) + 1
}

// requestNumber is the number of a request that is in status. An operator that did not know the field wrote none.
func requestNumber(c *v1alpha1.CheckpointStatus) int64 { return cmp.Or(c.Number, c.RequestTime.Unix()) }

func (p *planner) checkpointGrace() time.Duration {
	return time.Duration(ptr.Deref(p.spec.Checkpoint.GraceSeconds, 0)) * time.Second
}

// watchDepartures asks for a checkpoint as well when others told workers to leave: surplus trains on for its grace, and a drained
// core worker for as long as it takes to end.
func (p *planner) watchDepartures() {
	for w := range p.workers() {
		if w.Terminating && w.Phase == corev1.PodRunning && p.recordedLost(w) {
			p.saved(forEviction)
		}
	}
}

// tellCheckpoint notes who leaves on the word of others, passes a request on once it is in status, and closes it when nobody is
// about to leave any more.
func (p *planner) tellCheckpoint() {
	p.watchDepartures()
	if p.st.Checkpoint == nil {
		return
	}
	if !p.departing {
		p.st.Checkpoint = nil
		return
	}
	written, master := p.o.Job.Status.Checkpoint, p.at[0]
	if written == nil || master == nil || master.Terminating || master.CheckpointRequested >= requestNumber(written) {
		return
	}
	p.d.RequestCheckpoint = &CheckpointRequest{UID: master.UID, Value: strconv.FormatInt(requestNumber(written), 10)}
}

// lostSince is since when work is lost if all workers go back to the last checkpoint that is known of now; nil if none was done.
// One of a time that has not come is not believed, but for the second by which the number of a request is ahead.
func (p *planner) lostSince() *metav1.Time {
	if p.st.RunningSince == nil {
		return nil
	}
	since := *p.st.RunningSince
	if master := p.at[0]; master != nil {
		saved := time.Unix(master.CheckpointDone, 0)
		if now := p.time(); saved.Equal(now.Add(time.Second)) {
			saved = now.Time
		}
		if saved.After(since.Time) && !saved.After(p.now) {
			since = metav1.NewTime(saved)
		}
	}
	return &since
}
