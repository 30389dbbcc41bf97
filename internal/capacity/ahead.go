package capacity

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Ahead is how a gang that fits now stands to the head of its line, which does not.
//
//	room
//	  |  runs until a   |  head
//	  |-----------------+ - - - - - - - - -     HeadAt is a: who ends before it takes nothing from the head.
//	  |  runs until b           |
//	  |-------------------------|
//	  |  left over once the head is placed      Spare: who fits here takes nothing from it either.
//	  +--------------------------------------> time
type Ahead struct {
	// HeadAt is when the head has room, if pods leave when they are expected to. Zero: it may have room at any moment.
	HeadAt time.Time
	// Spare is true if the head has room at that time also while the gang runs.
	Spare bool
}

// JudgeAhead says of the gangs that fit now how they stand to the head of their line. It is empty if the head fits now, if the
// model does not cover it or it has rules about other pods, and if nothing tells when it will have room. Where Volcano would put
// a gang on other nodes than the model does, Spare may be wrong.
func (m *Model) JudgeAhead(head *Gang, others []*Gang) map[types.NamespacedName]Ahead {
	if head.beyondModel() != "" || m.isRuled(head) || m.fitsNow(head) {
		return nil
	}
	departing := slices.Clone(m.departing)
	slices.SortStableFunc(departing, func(a, b *Pod) int { return a.Until.Compare(b.Until) })
	gone, at, known := m.clone().departUntilFits(head, departing)
	if !known {
		return nil
	}
	all, alike := map[types.NamespacedName]Ahead{}, map[string]*Ahead{}
	for _, g := range others {
		key := g.gangKey()
		answer, judged := alike[key]
		if !judged && !m.isRuled(g) && m.fitsNow(g) {
			beside := m.clone()
			beside.placeWorkers(g, g.Workers, beside.freeView())
			beside.emptyFor(head)
			beside.depart(departing[:gone])
			answer = &Ahead{HeadAt: at, Spare: beside.fitsNow(head)}
		}
		// Gangs that ask for the same share the answer: a line may have hundreds of them.
		if alike[key] = answer; answer != nil {
			all[g.Job] = *answer
		}
	}
	return all
}

// departUntilFits has departing pods leave, in order, until the gang fits. It returns how many are gone then, and when they are.
func (s simulation) departUntilFits(g *Gang, departing []*Pod) (gone int, at time.Time, known bool) {
	s.emptyFor(g)
	for !s.fitsNow(g) {
		if gone == len(departing) {
			return 0, at, false
		}
		// All that leave at one time leave together.
		first := gone
		for at = departing[first].Until; gone < len(departing) && departing[gone].Until.Equal(at); gone++ {
			continue
		}
		s.depart(departing[first:gone])
	}
	return gone, at, true
}
