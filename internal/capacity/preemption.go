package capacity

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Preemption is why a job must stop as a whole.
type Preemption struct {
	// By is the gang that it makes room for. Tier is the name of that gang's tier.
	By   types.NamespacedName
	Tier string
}

// preempt chooses the jobs that must stop as a whole so that the gang fits, given that all surplus leaves that it may take: the
// least important first, then who loses the least work, then the youngest. It returns no jobs if the gang may stop none, if all
// of them are not enough, or if the gang is served without them, by surplus or by leaving pods.
func (m *Model) preempt(g *Gang, r *reach) (stopped []Running, served bool) {
	if len(g.Preempts) == 0 || m.isBeyond(g) {
		return nil, false
	}
	d := m.demandOf(g)
	may := r.circleOf(d)
	switch {
	case !d.fitsWithout(may.everybody):
		return nil, false // Jobs would stop in vain.
	case d.fitsWithout(may.surplus):
		return nil, true
	}
	gone := may.surplus.clone()
	var left [][]*Pod // by stopped job: its pods that are not in the crowd of surplus already
	// With everybody gone it fits, so the gangs do not run out.
	for len(stopped) == 0 || !d.fitsWithout(gone) {
		next := may.gangs[len(stopped)]
		stopped, left = append(stopped, next), append(left, m.join(gone, m.workers[next.Job]))
	}
	// The last job made the gang fit. With it some of those before may be unnecessary; the most important are spared first.
	for i := len(stopped) - 2; i >= 0; i-- {
		m.part(gone, left[i])
		if d.fitsWithout(gone) {
			stopped = slices.Delete(stopped, i, i+1)
		} else {
			m.join(gone, left[i])
		}
	}
	return stopped, false
}

// ChooseResumed chooses the preempted gang that may continue: the oldest whose core fits beside the gangs that claim room, once
// surplus that it may take has left, unless a claim would stop it again. It returns nil for none. The result is bound to the
// model of accelerator on which it fits.
func (m *Model) ChooseResumed(preempted, claiming []*Gang) *Gang {
	// One at a time: from now on it is a waiting gang itself, and the next one must be judged beside it.
	may := newReach(func(types.NamespacedName) bool { return true })
	preempted = slices.Clone(preempted)
	slices.SortFunc(preempted, func(a, b *Gang) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Job.Namespace, b.Job.Namespace), cmp.Compare(a.Job.Name, b.Job.Name))
	})
	standings := map[inQueue]*standing{}
	for _, p := range preempted {
		tier := inQueue{p.Queue, p.TierName}
		if standings[tier] == nil {
			standings[tier] = m.standingOf(tier, claiming, may)
		}
		s := standings[tier]
		for on := range p.variants() {
			if d := s.rest.demandOf(on); !s.again && d.fitsWithout(may.circleOf(d).surplus) {
				return on
			}
		}
	}
	return nil
}

type inQueue struct{ queue, tier string }

// standing is what the gangs that claim room leave to the stopped gangs of one tier in a queue.
type standing struct {
	// again is true while a claim would stop a gang of that tier again.
	again bool
	// rest is the cluster after the gangs that claim room have taken theirs.
	rest simulation
}

// standingOf judges a tier. A claiming gang that may stop the tier keeps it from resuming as long as stopping would serve that
// gang. A gang that would not fit even so, or that the model does not cover, stops no job and needs no room now, so the tier
// may resume.
func (m *Model) standingOf(of inQueue, claiming []*Gang, may *reach) *standing {
	s := &standing{rest: m.clone()}
	for _, g := range orderedGangs(claiming) {
		if g.Queue != of.queue || !slices.Contains(g.Preempts, of.tier) {
			s.rest.reserve(g)
			continue
		}
		d := m.demandOf(g)
		if !m.isBeyond(g) && d.fitsWithout(may.circleOf(d).everybody) {
			s.again = true
			return s
		}
	}
	return s
}

// orderedGangs returns the gangs in the order in which they get room.
func orderedGangs(gangs []*Gang) []*Gang {
	gangs = slices.Clone(gangs)
	SortGangs(gangs)
	return gangs
}
