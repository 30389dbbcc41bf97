package capacity

import "k8s.io/apimachinery/pkg/types"

// Sequence seats gangs that have no pods yet, in the order in which Seat is called. It answers which of them may ask Volcano for
// room: those that would get it.
type Sequence struct {
	// rest has the room that gangs leave which were seated or refused; open only what those leave that were seated.
	rest, open simulation
	// asking are the queues in which a gang waits for others to leave. One at a time, because the same would leave for two.
	asking map[string]bool
	may    *reach
}

// NewSequence begins a sequence in one queue, beside gangs that claim room already. leaves returns whether a job's surplus leaves
// for waiting gangs.
func (m *Model) NewSequence(queue string, claiming []*Gang, leaves func(types.NamespacedName) bool) *Sequence {
	s := &Sequence{rest: m.clone(), open: m.clone(), asking: map[string]bool{}, may: newReach(leaves)}
	for _, g := range orderedGangs(claiming) {
		if !s.place(g, s.rest) && g.Queue == queue {
			s.rest.reserve(g)
			s.asking[queue] = true
		}
	}
	return s
}

// SeatNext returns whether the gang would get room: free room that no gang before it needs, or that others leave for it. One that
// was held long takes any free room. A gang that is refused keeps the free room that it could use. Gangs that the model does not
// cover are always seated.
func (s *Sequence) SeatNext(g *Gang, heldLong bool) bool {
	if s.rest.isBeyond(g) || s.place(g, s.rest) || heldLong && s.place(g, s.open) {
		return true
	}
	seated := false
	if !s.asking[g.Queue] {
		for on := range g.variants() {
			d := s.rest.demandOf(on)
			if seated = d.fitsWithout(s.may.circleOf(d).everybody); seated {
				s.asking[g.Queue] = true
				break
			}
		}
	}
	s.rest.reserve(g)
	return seated
}

// place places the gang if it fits in what a model has, now or once leaving pods are gone.
func (s *Sequence) place(g *Gang, in simulation) bool {
	for on := range g.variants() {
		if in.placeIfFits(on) {
			if in != s.open {
				s.open.placeIfFits(on)
			}
			return true
		}
	}
	return false
}
