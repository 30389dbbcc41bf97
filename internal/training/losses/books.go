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

	"github.com/tideline-io/tideline/api/v1alpha1"
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
	// OOMKills are the containers that ran out of memory in these losses.
	OOMKills []sizing.OOMKill
	// progressed is true if the training has reported progress since the last counted restart.
	progressed bool
}

// Open returns empty books for a job.
func Open(s *jobstate.State) *Books { return &Books{State: s} }

// SettleLosses compares the members that status has with the pods that exist, and records each loss exactly once: in
// status.members as lost, among the evicted, and in restarts if it counts. The failure policy's answer is noted in the same
// evaluation, so that a crash cannot separate the two.
func (b *Books) SettleLosses() {
	// By index; one without a UID stands for an index that has no member.
	members := make([]v1alpha1.Member, len(b.At))
	for _, m := range b.Status.Members {
		members[m.Index] = m
	}
	losses := b.findLosses(members)
	b.judgeSuccesses(members, losses)
	for i := range losses {
		l, m := &losses[i], &members[losses[i].index]
		r := b.ruleOn(l)
		b.recordLoss(l, m, r)
		b.noteOOM(l, r)
		b.applyRuling(l, r)
		if l.inPlace {
			continue // The pod lives on and stays a living member.
		}
		m.Index, m.UID, m.Lost, m.Left, m.Completed = l.index, l.uid, true, l.left, l.completed && !l.stranded
		m.ContainerRestarts, m.Incident, m.StrandedTime = 0, 0, nil
	}
	b.markStranded(members, losses)
	for w := range b.AttemptWorkers() {
		known := &members[w.Index]
		if !w.IsRunning() || (known.UID == w.UID && known.Lost) {
			continue // A pod becomes a member once it runs; before that its deletion costs nothing.
		}
		if known.UID != w.UID {
			*known = v1alpha1.Member{Index: w.Index, UID: w.UID, Failures: known.Failures, RetryTime: known.RetryTime}
		}
		if b.IsEvicted(w.Index) {
			// It runs again, so it no longer waits for a cooldown.
			ReleaseEvicted(b.Status, func(i int32) bool { return i == w.Index })
		}
	}
	b.Left, b.Completed = make([]bool, len(b.At)), make([]bool, len(b.At))
	for i := range members {
		b.Left[i], b.Completed[i] = members[i].Left, members[i].Completed
		if b.progressed && !members[i].Lost {
			// Workers that live after progress have proved themselves, so their back-offs begin anew.
			members[i].Failures, members[i].Rejections, members[i].RetryTime = 0, 0, nil
		}
	}
	b.Status.Members = slices.DeleteFunc(members, func(m v1alpha1.Member) bool { return m.UID == "" })
}

// ReleaseWorker records that the operator takes a surplus worker away, and for which gang.
func (b *Books) ReleaseWorker(w *podstate.Worker, to string) {
	l := &loss{index: w.Index, uid: w.UID, ran: w.IsRunning(), eviction: Told, disruption: Told, conditions: w.Conditions}
	b.recordEviction(l)
	b.applyRuling(l, b.ruleOn(l))
	b.Status.Elasticity.GaveWayTo = to
	if w.Scheduled && !w.Terminating && w.Disruption == "" {
		// Surplus that never had a node is not counted: it only stops waiting.
		b.noteEviction(w.Index, Told)
	}
	at, known := slices.BinarySearchFunc(b.Status.Members, w.Index, jobstate.CompareIndex)
	if !known {
		b.Status.Members = slices.Insert(b.Status.Members, at, v1alpha1.Member{})
	}
	b.Status.Members[at] = v1alpha1.Member{Index: w.Index, UID: w.UID, Lost: true, Left: l.left}
}

// CompletesOnSuccess is true if the failure policy completes the job at once when worker 0 succeeds, without waiting for the
// others.
func (b *Books) CompletesOnSuccess() bool {
	return b.matchRule(occurrence{event: v1alpha1.OnTaskCompleted}).action == v1alpha1.ActionCompleteJob
}

// ReleaseEvicted drops the chosen indices from the evicted surplus, so that they may return before the cooldown has passed.
func ReleaseEvicted(st *v1alpha1.ElasticTrainingJobStatus, release func(int32) bool) {
	if st.Elasticity != nil {
		st.Elasticity.Evicted = slices.DeleteFunc(st.Elasticity.Evicted, release)
	}
}
