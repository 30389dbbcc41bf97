package capacity

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tideline-io/tideline/internal/capacity/devices"
)

// Answer is what the model says about one waiting gang.
type Answer struct {
	// Unknown names what the gang asks that the model does not cover. Everything else is zero then.
	Unknown string
	// Fits is true if the whole gang could be placed now, without anything giving way.
	Fits bool
	// Largest is how many workers of the gang's shape could be placed together now.
	Largest int32
	// Free is what is free now of each resource that the gang asks for, on nodes that take its workers.
	Free Amounts
	// Short is what the whole gang asks beyond what is free or, if QueueLimit is true, beyond what its queue may still take. It is
	// empty for a gang that does not fit although enough is free in all, because it lies in pieces too small for its workers.
	Short Amounts
	// Leaving is what leaving pods hold of what the gang asks for, if the gang waits for nothing else: it fits once they are gone.
	// Nil for every other gang.
	Leaving Amounts
	// Nodes is how many nodes take the gang's workers, whatever their size and however full they are.
	Nodes int
	// Guarantees says which other queues' guarantees bound Largest, as "ads: 4 nvidia.com/gpu"; empty where the queue's own
	// capability does, or nothing of a queue.
	Guarantees string
	// QueueLimit is true if the limit of the queue, not the room on nodes, bounds Largest.
	QueueLimit bool
	// Ruled is true for a gang that has rules about other pods, or that other pods have rules about, so that what is free on a node
	// is not always free for it.
	Ruled bool
	// Oversize is why not even one worker fits, in an answer of CeilingFor; nil where it is not the size of one.
	Oversize *Oversize
	// Within is the gang's, and Domain is the HyperNode that the answer is about, the best for the gang; empty if there is none.
	Within *int
	Domain string
}

// Ask answers for one gang.
func (m *Model) Ask(g *Gang) Answer {
	if unknown := g.beyondModel(); unknown != "" {
		return Answer{Unknown: unknown}
	}
	if in, free := m.confined(g); !free {
		return m.askConfined(g, in)
	}
	d := m.demandOf(g)
	answer := Answer{Free: d.sumVectors(false), Nodes: len(d.worker.nodes), Ruled: m.isRuled(g)}
	limit, fitting := answer.Free, d.exactRoom()
	// Whether it fits depends on the domain in which the scheduler begins.
	if fitting < g.Workers && m.seatingOf(d.worker, m.freeView()).mostTogether() >= int64(g.Workers) {
		return Answer{Unknown: OneDomain}
	}
	left, headroom := m.headroom(g)
	// Where the limit of its queue keeps it out, it does not matter what is free of each device.
	if headroom >= g.Workers && m.isUnclear(g, m.freeView()) {
		return Answer{Unknown: devices.Unclear}
	}
	if answer.QueueLimit = headroom < fitting; answer.QueueLimit {
		limit, answer.Guarantees = left, m.sayGuarantees(g, left)
	}
	answer.Largest = min(fitting, headroom)
	answer.Fits = answer.Largest >= g.Workers
	if answer.Fits && d.mayBlockItself(m.freeView()) {
		return Answer{Unknown: InTurn}
	}
	answer.Short = shortfall(g, limit)
	if !answer.Fits && m.fitsSoon(g) {
		answer.Leaving = d.leaving(answer.Free)
	}
	return answer
}

// largest is how many of the gang's workers could be placed now; 0 for a gang that the model does not cover.
func (m *Model) largest(g *Gang) int32 {
	if g.beyondModel() != "" {
		return 0
	}
	if in, free := m.confined(g); !free {
		most := int32(0)
		for _, on := range in {
			most = max(most, m.largest(on))
		}
		return most
	}
	if _, headroom := m.headroom(g); headroom > 0 {
		return min(m.demandOf(g).exactRoom(), headroom)
	}
	return 0
}

// fitsNow is true if the whole gang could be placed now.
func (m *Model) fitsNow(g *Gang) bool {
	if g.beyondModel() != "" {
		return false
	}
	if in, free := m.confined(g); !free {
		return slices.ContainsFunc(in, m.fitsNow)
	}
	_, headroom := m.headroom(g)
	if headroom < g.Workers {
		return false
	}
	return m.demandOf(g).roomNow() >= g.Workers
}

// fitsSoon is true for a gang that fits once leaving pods are gone.
func (m *Model) fitsSoon(g *Gang) bool {
	// While nothing leaves, soon is now.
	if m.outgoing == nil || g.beyondModel() != "" {
		return false
	}
	if in, free := m.confined(g); !free {
		return slices.ContainsFunc(in, m.fitsSoon)
	}
	return m.withinLimit(g, &crowd{}) && m.demandOf(g).roomSoon() >= g.Workers
}

// shortfall is what the whole gang asks for beyond the limit.
func shortfall(g *Gang, limit Amounts) Amounts {
	short := Amounts{}
	for name, amount := range g.requestsOf(g.Workers) {
		if missing := amount - limit[name]; missing > 0 {
			short[name] = missing
		}
	}
	return short
}

// FindVictims is the smallest set of surplus whose leaving makes the gang fit, among jobs for which yields returns true. It is
// empty if the gang fits already or once leaving pods are gone, if no set is enough, and if the model does not cover the gang.
// For a gang with workers in Apart each victim is needed, but the set is not always the smallest. The same holds where
// jobs change their size by several workers at once, because whole steps of them leave.
func (m *Model) FindVictims(g *Gang, yields func(types.NamespacedName) bool) []Surplus {
	if m.isBeyond(g) {
		return nil
	}
	if in, free := m.confined(g); !free {
		return fewestIn(in, func(on *Gang) []Surplus { return m.FindVictims(on, yields) })
	}
	return surplusOf(m.selectionFor(g, m.rankSurplus(g, yields)).wholeSteps())
}

// countAll is how many workers fit on all nodes by one of their vectors, for workers without rules about other pods.
func (a *ask) countAll(vector func(*node) []int64) int32 {
	var n int64
	for _, node := range a.nodes {
		n = min(n+int64(a.countFitting(node, vector(node), math.MaxInt32)), math.MaxInt32)
	}
	return int32(n)
}

// workersWithin is how many of the gang's workers an amount of one resource is enough for.
func (g *Gang) workersWithin(name corev1.ResourceName, amount int64) int64 {
	for i := range g.Apart {
		if amount -= g.Apart[i].Requests[name]; amount < 0 {
			return int64(i)
		}
	}
	if each := g.Shape.Requests[name]; each > 0 {
		return int64(len(g.Apart)) + amount/each
	}
	return math.MaxInt32
}

// SortGangs sorts waiting gangs into the order in which they get room: the highest tier, then the oldest job, then by name.
func SortGangs(gangs []*Gang) {
	slices.SortStableFunc(gangs, func(a, b *Gang) int { return a.comesBefore(b) })
}

func (g *Gang) comesBefore(o *Gang) int {
	return cmp.Or(cmp.Compare(o.Tier, g.Tier), g.Created.Compare(o.Created),
		cmp.Compare(g.Job.Namespace, o.Job.Namespace), cmp.Compare(g.Job.Name, o.Job.Name))
}
