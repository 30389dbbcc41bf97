// Package losses finds out which workers of a job were lost and why, and records each loss exactly once: what it costs, whose
// fault it was, and where it leads to.
package losses

import (
	"slices"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/usage/sizing"
)

// Books are the losses of one evaluation, and what becomes of them. Its methods write to the status that is planned.
type Books struct {
	*jobstate.State
	// Outcome is where the losses lead to.
	Outcome Outcome
	// Counted are what the status records for the first time, for those who count.
	Counted []Loss
	// OOMKills are containers that ran out of memory, as far as the status records the loss for the first time.
	OOMKills []sizing.OOMKill
	// progressed is true when the training reported progress.
	progressed bool
}

// Open returns empty books for a job.
func Open(s *jobstate.State) *Books { return &Books{State: s} }

// Settle compares the workers that the job was known to have with those it has, and records each loss exactly once:
// in status.members as lost, among the evicted, and in restarts if it counts. What the failure policy says of it is noted in
// the same evaluation, so that neither happens without the other.
func (b *Books) Settle() {
	members := make([]v1alpha1.Member, len(b.At))
	for _, m := range b.Status.Members {
		members[m.Index] = m
	}
	losses := b.losses(members)
	b.judgeSuccesses(members, losses)
	for i := range losses {
		l, m := &losses[i], &members[losses[i].index]
		r := b.ruleOn(l)
		b.record(l, m, r)
		b.noteOOM(l, r)
		b.answer(l, r)
		if l.inPlace {
			continue
		}
		m.Index, m.UID, m.Lost, m.Left, m.Completed = l.index, l.uid, true, l.left, l.completed && !l.stranded
		m.ContainerRestarts, m.Incident, m.StrandedTime = 0, 0, nil
	}
	b.strand(members, losses)
	for w := range b.AttemptWorkers() {
		known := &members[w.Index]
		if !w.Running() || (known.UID == w.UID && known.Lost) {
			continue
		}
		if known.UID != w.UID {
			*known = v1alpha1.Member{Index: w.Index, UID: w.UID, Failures: known.Failures, RetryTime: known.RetryTime}
		}
		if b.Evicted(w.Index) {
			ReleaseEvicted(b.Status, func(i int32) bool { return i == w.Index })
		}
	}
	b.Left, b.Completed = make([]bool, len(b.At)), make([]bool, len(b.At))
	for i := range members {
		b.Left[i], b.Completed[i] = members[i].Left, members[i].Completed
		if b.progressed && !members[i].Lost {
			members[i].Failures, members[i].Rejections, members[i].RetryTime = 0, 0, nil
		}
	}
	b.Status.Members = slices.DeleteFunc(members, func(m v1alpha1.Member) bool { return m.UID == "" })
}

// Release records that a surplus worker leaves on the operator's word, and for which gang.
func (b *Books) Release(w *podstate.Worker, to string) {
	l := &loss{index: w.Index, uid: w.UID, ran: w.Running(), eviction: Told, disruption: Told, conditions: w.Conditions}
	b.recordEviction(l)
	b.answer(l, b.ruleOn(l))
	b.Status.Elasticity.GaveWayTo = to
	if w.Scheduled && !w.Terminating && w.Disruption == "" {
		b.noteEviction(w.Index, Told)
	}
	at, known := slices.BinarySearchFunc(b.Status.Members, w.Index, jobstate.CompareIndex)
	if !known {
		b.Status.Members = slices.Insert(b.Status.Members, at, v1alpha1.Member{})
	}
	b.Status.Members[at] = v1alpha1.Member{Index: w.Index, UID: w.UID, Lost: true, Left: l.left}
}

// CompletesOnSuccess is true where the failure policy has the success of worker 0 complete the job without waiting for the
// others.
func (b *Books) CompletesOnSuccess() bool {
	return b.rule(occurrence{event: v1alpha1.OnTaskCompleted}).action == v1alpha1.ActionCompleteJob
}

// ReleaseEvicted lets surplus that gave way come back before its cooldown has passed.
func ReleaseEvicted(st *v1alpha1.ElasticTrainingJobStatus, release func(int32) bool) {
	if st.Elasticity != nil {
		st.Elasticity.Evicted = slices.DeleteFunc(st.Elasticity.Evicted, release)
	}
}
