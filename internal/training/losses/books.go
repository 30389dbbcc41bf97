// Package losses finds which workers of a job were lost and why, and records each loss exactly once: whether it counts as a
// restart, and what follows from it.
//
//	status.members        pods           ->  loss
//	UID a, living         pod a          ->  none
//	UID a, living         no pod, pod b  ->  a was lost
//	UID a, lost           any            ->  none: recorded before
//
// Whatever status.members has was decided. Everything else is decided from the difference, so neither a restart of the operator
// nor a second one counts a loss twice (docs/decisions/0008-members-and-losses.md).
package losses

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// Books are the losses of one evaluation and what follows from them. Its methods write to the planned status.
type Books struct {
	*jobstate.State
	// Outcome is what the losses lead to.
	Outcome Outcome
	// Counted are the losses that the status records for the first time, for metrics.
	Counted []Loss
	// Failed are the failures among them that say something of a node.
	Failed []Failure
	// OOMKills are the containers that ran out of memory in these losses.
	OOMKills []sizing.OOMKill
	// departed are the observed departures, by UID.
	departed map[types.UID]*podstate.Departure
	// progressed is true if the training has reported progress since the last counted restart.
	progressed bool
	// gangCounted is true once a restart of all workers that cannot go on without one of them was counted.
	gangCounted bool
}

// Open returns empty books for a job.
func Open(s *jobstate.State) *Books {
	b := &Books{State: s, departed: make(map[types.UID]*podstate.Departure, len(s.Departures))}
	for i := range s.Departures {
		if d := &s.Departures[i]; b.departed[d.UID] == nil {
			b.departed[d.UID] = d
		}
	}
	return b
}

// SettleLosses compares the members that status has with the pods that exist, and records each loss exactly once: in
// status.members as lost, among the evicted, and in restarts if it counts. The failure policy's answer is noted in the same
// evaluation, so that a crash cannot separate the two.
func (b *Books) SettleLosses() {
	members := b.readMembers()
	losses := b.findLosses(members)
	// Before the first ruling: whether a worker that succeeded is stranded decides what follows from it.
	b.judgeSuccesses(members, losses)
	for i := range losses {
		l, m := &losses[i], &members[losses[i].index]
		r := b.ruleOn(l)
		b.recordLoss(l, m, r)
		b.noteOOM(l, r)
		b.applyRuling(l, r)
		if l.inPlace && !b.leavesNode(l) {
			continue // The pod lives on and stays a living member.
		}
		m.Member = v1beta1.Member{Index: l.index, UID: l.uid, State: l.state()}
		m.incident = 0
	}
	b.markStranded(members, losses)
	returned := map[int32]bool{}
	for w := range b.AttemptWorkers() {
		known := &members[w.Index]
		if !w.IsRunning() || (known.UID == w.UID && known.IsLost()) {
			continue // A pod becomes a member once it runs; before that its deletion costs nothing.
		}
		if known.UID != w.UID {
			known.succeed(w.Index, w.UID)
		}
		if b.IsEvicted(w.Index) {
			returned[w.Index] = true
		}
	}
	if len(returned) > 0 {
		// They run again, so they no longer wait for a cooldown.
		ReleaseEvicted(b.Status, func(i int32) bool { return returned[i] })
	}
	b.Left, b.Completed = make([]bool, len(b.At)), make([]bool, len(b.At))
	for i := range members {
		b.Left[i], b.Completed[i] = members[i].HasLeft(), members[i].HasCompleted()
		if b.progressed && !members[i].IsLost() {
			// Workers that live after progress have proved themselves, so their back-offs begin anew.
			members[i].retry = v1beta1.Retry{}
		}
	}
	b.writeMembers(members)
}

// ReleaseWorker records that the operator takes a surplus worker away, and for which gang; nil for the core of its own job.
func (b *Books) ReleaseWorker(w *podstate.Worker, to *v1beta1.GangRef) {
	b.release(w, Told)
	b.Status.Elasticity.GaveWayTo = to
}

// ReleaseRemainder records that the operator takes a surplus worker away because it belongs to no whole step.
func (b *Books) ReleaseRemainder(w *podstate.Worker) { b.release(w, Remainder) }

func (b *Books) release(w *podstate.Worker, why string) {
	l := &loss{index: w.Index, uid: w.UID, ran: w.IsRunning(), eviction: why, disruption: why, conditions: w.Conditions}
	b.recordEviction(l)
	b.applyRuling(l, b.ruleOn(l))
	if w.Scheduled && !w.Terminating && w.Disruption == "" {
		// Surplus that never had a node is not counted: it only stops waiting.
		b.noteEviction(w.Index, why)
	}
	replaceMember(b.Status, v1beta1.Member{Index: w.Index, UID: w.UID, State: l.state()})
}

// CompletesOnSuccess is true if the failure policy completes the job at once when worker 0 succeeds, without waiting for the
// others.
func (b *Books) CompletesOnSuccess() bool {
	return b.matchRule(occurrence{event: v1beta1.OnTaskCompleted}).action == v1beta1.ActionCompleteJob
}

// ReleaseEvicted drops the chosen indices from the evicted surplus, so that they may return before the cooldown has passed.
func ReleaseEvicted(st *v1beta1.ElasticTrainingJobStatus, release func(int32) bool) {
	if st.Elasticity != nil {
		st.Elasticity.Evicted = slices.DeleteFunc(st.Elasticity.Evicted, release)
	}
}
