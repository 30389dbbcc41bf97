package training

import (
	"cmp"
	"slices"
	"time"

	"github.com/tideline-io/tideline/api/v1alpha1"
	"github.com/tideline-io/tideline/internal/capacity"
	"github.com/tideline-io/tideline/internal/platform/podstate"
	"github.com/tideline-io/tideline/internal/training/jobstate"
	"github.com/tideline-io/tideline/internal/training/losses"
)

// giveWay lets the surplus go that the arbiter named: it is recorded first, and deleted once that is in status, also after a
// restart in between.
func (p *planner) giveWay() {
	for w := range p.AttemptWorkers() {
		if !p.IsSurplus(w.Index) || w.Ended() {
			continue
		}
		if p.RecordedLost(w) {
			p.delete(w)
			continue
		}
		if !slices.Contains(p.Verdict.GiveUp, w.UID) || p.IsLost(w) {
			continue // One that is lost by others' word leaves for their reason.
		}
		if w.Running() {
			if ready := p.ensureCheckpoint(forShrink); !ready {
				continue
			}
		}
		p.books.Release(w, served(p.State))
	}
}

// served names the gang that the surplus leaves for.
func served(s *jobstate.State) string {
	to := s.Verdict.To
	if to.Namespace == s.Job.Namespace && to.Name == s.Job.Name {
		return "the core of its own job"
	}
	return to.String()
}

// takeRoomBack lets surplus that left for a gang come back at once, if that gang was not placed in time: its cooldown
// would cost the training room that serves no other job. Where others of its workers leave for the next gang, those that are gone
// wait with them.
func (p *planner) takeRoomBack() {
	e := p.Status.Elasticity
	if e == nil || len(e.Evicted) == 0 || e.LastEvictionReason != losses.Told || !p.InVain(e.GaveWayTo) {
		return
	}
	if vain := p.Status.LeftInVain; vain == nil || vain.For != e.GaveWayTo || vain.Time.Before(e.LastEvictionTime) {
		p.Status.LeftInVain = &v1alpha1.LeftInVain{For: e.GaveWayTo, Time: p.Time(), Workers: int32(len(e.Evicted))}
	}
	if len(p.Verdict.GiveUp) > 0 {
		return
	}
	p.forget(func(i int32) bool { return p.Evicted(i) && p.At[i] == nil && !p.HasLeft(i) })
	losses.ReleaseEvicted(p.Status, func(int32) bool { return true })
}

// shrinkToMaximum lets the workers beyond maxReplicas go: those that still wait first, then the highest index. Workers that are
// members in status go once they are members no more, so that nothing takes their leaving for a loss.
func (p *planner) shrinkToMaximum() {
	var beyond []*podstate.Worker
	for w := range p.AttemptWorkers() {
		if w.Index >= p.Maximum {
			beyond = append(beyond, w)
		}
	}
	slices.SortFunc(beyond, func(a, b *podstate.Worker) int {
		return cmp.Or(cmp.Compare(order(a.Scheduled), order(b.Scheduled)), cmp.Compare(b.Index, a.Index))
	})
	if slices.ContainsFunc(beyond, func(w *podstate.Worker) bool { return w.Running() && p.RecordedMember(w) }) {
		if ready := p.ensureCheckpoint(forShrink); !ready {
			return
		}
	}
	for _, w := range beyond {
		if gaveWay := p.RecordedLost(w) && !w.Ended(); !p.RecordedMember(w) && !gaveWay {
			p.delete(w)
		}
	}
	p.forget(func(i int32) bool { return i >= p.Maximum })
}

func order(b bool) int {
	if b {
		return 1
	}
	return 0
}

// replaceFailed deletes pods that ended badly, or that are stranded, so that their names are free for new ones: Volcano
// does not count a failed pod as a member. The loss is in status first, and each worker has a back-off of its own.
func (p *planner) replaceFailed() {
	retry := map[int32]time.Duration{}
	for _, m := range p.Status.Members {
		if m.Lost && m.RetryTime != nil {
			retry[m.Index] = min(m.RetryTime.Sub(p.Now), losses.LongestBackoff)
		}
	}
	for i := range p.Maximum {
		w := p.At[i]
		if w == nil || !w.Ended() || w.Terminating || !p.RecordedLost(w) || p.RecordedLeft(w) || p.HasLeft(i) ||
			p.Trained(w) {
			continue
		}
		if wait := retry[i]; wait > 0 && w.Disruption == "" {
			p.wake(wait)
			continue
		}
		p.delete(w)
	}
}

// releaseNodes deletes workers that wait for room and still avoid a node that may be used again: the affinity of a pod cannot be
// changed. They come back without it.
func (p *planner) releaseNodes() {
	own := podstate.AvoidedBy(&p.Spec.Template.Spec)
	for w := range p.AttemptWorkers() {
		if !w.Scheduled && slices.ContainsFunc(p.Job.Status.AvoidedNodes, func(n v1alpha1.AvoidedNode) bool {
			return n.Until == nil && slices.Contains(w.Avoids, n.Name) && !slices.Contains(own, n.Name)
		}) {
			p.delete(w)
		}
	}
}

// deleteStrays removes pods that no current attempt knows: they would wait in a rendezvous of their own for ever.
func (p *planner) deleteStrays() {
	for _, w := range p.Strays {
		p.delete(w)
	}
}

// delete has a worker leave, in no more time than others wait for its room: what it has to save, it was asked for before.
func (p *planner) delete(w *podstate.Worker) {
	if !w.Terminating && !p.deleting[w.UID] {
		p.deleting[w.UID] = true // One pod may have to leave for two reasons, and is deleted once.
		gone := *w
		gone.GraceSeconds = min(w.GraceSeconds, int64(capacity.LongestLeave.Seconds()))
		p.d.DeletePods = append(p.d.DeletePods, gone)
	}
}

// forget drops workers that the job gave up on purpose, or whose cooldown has passed: coming back is growth.
func (p *planner) forget(drop func(int32) bool) {
	p.Status.Members = slices.DeleteFunc(p.Status.Members, func(m v1alpha1.Member) bool { return drop(m.Index) })
	losses.ReleaseEvicted(p.Status, drop)
}
