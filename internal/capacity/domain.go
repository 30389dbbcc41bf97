package capacity

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tideline-io/tideline/internal/platform/topology"
)

// A gang may have to be placed in one HyperNode, and there are several in which it could be. Whether it fits is then asked of
// each as if no other nodes were there:
//
//	gang, Within tier 1  ->  the gang in rack-a | the gang in rack-b | ...  ->  it fits if it fits in one of them
//
// So the rest of the model knows nothing of HyperNodes but a Shape that is bound to one.

// domain is a HyperNode of the model.
type domain struct {
	topology.Domain
	// has is true for each of its nodes, by number.
	has []bool
}

// newDomains finds the nodes of HyperNodes among those of the model.
func (m *inventory) newDomains(all []topology.Domain) {
	m.topTier = topology.TopTier(all)
	m.hyperNodes = make([]*domain, len(all))
	for i := range all {
		d := &domain{Domain: all[i], has: make([]bool, len(m.nodes))}
		for _, name := range all[i].Nodes {
			if at, ready := m.number[name]; ready {
				d.has[at] = true
			}
		}
		m.hyperNodes[i] = d
	}
}

// confined are the gang in each HyperNode that it may be placed in, the lowest tier first. free is true for a gang that may be
// placed anywhere.
func (m *inventory) confined(g *Gang) (in []*Gang, free bool) {
	if g.Within == nil || *g.Within >= m.topTier {
		return nil, true
	}
	for _, d := range m.hyperNodes {
		if d.Tier <= *g.Within && d.HasAll(g.Beside) {
			in = append(in, g.boundTo(d))
		}
	}
	return in, false
}

// places are the gang in each HyperNode that it may be placed in, or the gang itself.
func (m *inventory) places(g *Gang) []*Gang {
	if in, free := m.confined(g); !free {
		return in
	}
	return []*Gang{g}
}

// boundTo is the gang with only the nodes of a HyperNode.
func (g *Gang) boundTo(d *domain) *Gang {
	on := *g
	on.Within, on.Beside, on.in = nil, nil, d
	on.Shape = g.Shape.boundTo(d)
	on.Apart = slices.Clone(g.Apart)
	for i := range on.Apart {
		on.Apart[i] = on.Apart[i].boundTo(d)
	}
	return &on
}

func (s *Shape) boundTo(d *domain) Shape {
	bound := *s
	constraints, worker := s.keys()
	bound.domain, bound.constraints, bound.worker = d, constraints+"\nin "+d.Name, worker+"\nin "+d.Name
	return bound
}

// confinement is a key of what confines the gang.
func (g *Gang) confinement() string {
	if g.Within == nil {
		return ""
	}
	return fmt.Sprintf("%d %s", *g.Within, strings.Join(g.Beside, " "))
}

// askConfined answers for a gang that must be placed in one HyperNode: for the one in which most of it could be placed.
func (m *Model) askConfined(g *Gang, in []*Gang) Answer {
	best := Answer{Free: emptyAmounts(g.requestsOf(g.Workers)), Short: g.requestsOf(g.Workers)}
	for i, on := range in {
		if answer := m.Ask(on); i == 0 || answer.isBetter(&best) {
			best = answer
			best.Domain = on.in.Name
		}
	}
	best.Within = g.Within
	return best
}

// isBetter is true for an answer that promises more.
func (a *Answer) isBetter(than *Answer) bool {
	rank := func(a *Answer) int {
		switch {
		case a.Fits:
			return 3
		case a.Unknown != "":
			return 2
		case a.Leaving != nil:
			return 1
		}
		return 0
	}
	if x, y := rank(a), rank(than); x != y {
		return x > y
	}
	return a.Largest > than.Largest
}

// roomiest is the gang in the HyperNode in which n of its workers have room, the lowest tier first, or else in that
// with room for the most; nil if it may be in none.
func (s simulation) roomiest(in []*Gang, n int32, by view) *Gang {
	var best *Gang
	most := int32(-1)
	for _, on := range in {
		room := min(s.demandOf(on).roomBy(by), n)
		if room > most {
			best, most = on, room
		}
	}
	return best
}

// fewestIn are the fewest victims with which the gang fits in one of the HyperNodes.
func fewestIn(in []*Gang, victims func(*Gang) []Surplus) []Surplus {
	var best []Surplus
	fewest := math.MaxInt
	for _, on := range in {
		if chosen := victims(on); len(chosen) > 0 && len(chosen) < fewest {
			best, fewest = chosen, len(chosen)
		}
	}
	return best
}

// sayWhere says to which HyperNodes a gang is confined, in the middle of a sentence; empty for one that is not.
func (a *Answer) sayWhere() string {
	switch {
	case a.Within == nil:
		return ""
	case a.Domain == "":
		return fmt.Sprintf(" in one HyperNode of tier %d or lower, and there is none", *a.Within)
	}
	return fmt.Sprintf(" in HyperNode %s, the best of tier %d or lower", a.Domain, *a.Within)
}

// domainsNow is a sum of what the HyperNodes are in which the gang may be placed, for its fingerprint.
func (m *inventory) domainsNow(g *Gang) (sum uint64) {
	in, _ := m.confined(g)
	for _, on := range in {
		sum += m.sumNodes(&on.Shape) * 31
	}
	return sum
}

// emptyAmounts is nothing of each of some resources.
func emptyAmounts(of Amounts) Amounts {
	none := maps.Clone(of)
	for name := range none {
		none[name] = 0
	}
	return none
}
