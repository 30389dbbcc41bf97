package capacity

import (
	"cmp"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Moves for a gang that waits in pieces are victims that all find another node:
//
//	gang -> fewest movable surplus whose leaving makes it fit -> gang placed -> each of the surplus on the tightest node left
//	         ^                                                                   |
//	         +---------- again, without those that found none -------------------+

const (
	// mostMissing is how many workers a gang may lack at most for moves to be sought: a choice costs the nodes × what it lacks.
	mostMissing = 64
	// mostRounds is how often surplus is chosen in all, for one gang or several, each time without what found no other node.
	mostRounds = 12
)

// Repack is advice: which surplus to move to other nodes so that a gang that waits in pieces has its place. It moves no core, and
// takes no other gang's room: each worker that moves finds another node beside the gang.
type Repack struct {
	// For is the gang, and Workers how many it waits for.
	For     types.NamespacedName
	Workers int32
	// Moves are at least one, in the order of victims.
	Moves []Move
}

// Move is a surplus worker that moves.
type Move struct {
	Surplus
	// From is the node that it is on, To one that has room for it.
	From, To string
}

// AdviseRepack seeks moves for the largest of the waiting gangs that neither fit now nor once leaving pods are gone, by how much
// they ask of the devices. movable returns the shape of a job's surplus, and nil for a job whose surplus must stay. It returns
// the first answer with the model as it would be after the moves; nil if there is none, or none was found within what an answer
// may cost. The answer needs the fewest moves unless some of those found no other node.
func (m *Model) AdviseRepack(
	devices []corev1.ResourceName, waiting []*Gang, movable func(types.NamespacedName) *Shape,
) (*Repack, *Model) {
	s := &repacker{movable: movable, shapes: map[types.NamespacedName]*Shape{}}
	// Gangs that fit have their places first, so that no move takes them.
	s.simulation = m.clone()
	var stuck []*Gang
	for _, g := range orderedGangs(waiting) {
		if !s.placeIfFits(g) {
			stuck = append(stuck, g)
		}
	}
	candidates := s.candidates()
	if len(candidates) == 0 {
		return nil, nil
	}
	all, rank := s.newCrowd(candidates), rankOf(candidates)
	for _, g := range largestFirst(devices, stuck) {
		if _, headroom := s.headroom(g); headroom < g.Workers || s.isBeyond(g) {
			continue // It waits for its queue, or for what the model does not know.
		}
		for _, on := range s.places(g) {
			if d := s.demandOf(on); on.Workers-d.roomSoon() > mostMissing || !d.fitsWithout(all) {
				continue
			}
			if moves, asks := s.movesFor(on, rank); len(moves) > 0 {
				after := m.clone()
				after.move(moves, asks)
				return &Repack{For: g.Job, Workers: g.Workers, Moves: moves}, after.Model
			}
		}
	}
	return nil, nil
}

// largestFirst are the gangs by how much they ask of the devices, the largest first; of equal ones who comes before.
func largestFirst(devices []corev1.ResourceName, gangs []*Gang) []*Gang {
	size := make(map[*Gang]int64, len(gangs))
	for _, g := range gangs {
		asks := g.requestsOf(g.Workers)
		for _, name := range devices {
			size[g] += asks[name]
		}
	}
	all := slices.DeleteFunc(slices.Clone(gangs), func(g *Gang) bool { return size[g] == 0 })
	slices.SortStableFunc(all, func(a, b *Gang) int { return cmp.Compare(size[b], size[a]) })
	return all
}

// repacker seeks moves while the gangs that fit have their places.
type repacker struct {
	simulation
	movable func(types.NamespacedName) *Shape
	shapes  map[types.NamespacedName]*Shape
	rounds  int
}

// candidates is the surplus that may move, in the order of victims. Jobs that change their size by whole steps stay: they would
// lose a step for the move of one worker.
func (s *repacker) candidates() []*Pod {
	var all []*Pod
	for i := range s.nodes {
		for _, p := range s.surplus[i] {
			if !s.claimed[p.Surplus.UID] && p.Surplus.Step <= 1 && s.shapeOf(p.Surplus.Job) != nil {
				all = append(all, p)
			}
		}
	}
	slices.SortFunc(all, comparePods)
	return all
}

func (s *repacker) shapeOf(job types.NamespacedName) *Shape {
	shape, known := s.shapes[job]
	if !known {
		if shape = s.movable(job); shape != nil && shape.Unmodelled != "" {
			shape = nil
		}
		s.shapes[job] = shape
	}
	return shape
}

// shapeOfPod is what a worker asks where it goes: its own requests, which sizing may have set, and its job's constraints.
func (s *repacker) shapeOfPod(p *Pod) *Shape {
	shape := s.shapeOf(p.Surplus.Job)
	if maps.Equal(shape.Requests, p.Requests) {
		return shape
	}
	own := *shape
	own.Requests, own.constraints, own.worker = p.Requests, "", ""
	return &own
}

// movesFor seeks moves that make the gang fit, among ranked surplus; none if there are none. asks are what those who move ask
// for, in the same order.
func (s *repacker) movesFor(g *Gang, rank map[*Pod]int64) (moves []Move, asks []*ask) {
	among := s.selectionFor(g, rank)
	for ; s.rounds < mostRounds; s.rounds++ {
		chosen := among.wholeSteps()
		if len(chosen) == 0 {
			return nil, nil
		}
		moves, asks, stays := s.seatElsewhere(g, chosen)
		if len(stays) == 0 {
			return moves, asks
		}
		// A copy, because the next gang has all of them to choose from.
		rest := maps.Clone(among.rank)
		for _, p := range stays {
			delete(rest, p)
		}
		among = among.among(rest)
	}
	return nil, nil
}

// seatElsewhere finds a node for each of the chosen, once they are gone and the gang has its place. stays are those without one.
func (s *repacker) seatElsewhere(g *Gang, chosen []*Pod) (moves []Move, asks []*ask, stays []*Pod) {
	rest := s.clone()
	rest.removeSurplus(chosen)
	rest.placeWorkers(g, g.Workers, rest.soonView())
	for _, p := range chosen {
		shape := s.shapeOfPod(p)
		a := rest.compile(shape)
		seat := rest.tightest(a)
		if seat == nil {
			stays = append(stays, p)
			continue
		}
		rest.place(a, shape.Kin, seat, 1)
		moves, asks = append(moves, Move{Surplus: *p.Surplus, From: p.Node, To: seat.Name}), append(asks, a)
	}
	return moves, asks, stays
}

// tightest is the node on which the fewest such workers have room, but one has; nil for none. So a move breaks up no node that is
// empty while another would do.
func (s simulation) tightest(a *ask) *node {
	var best *node
	least, by := int32(math.MaxInt32), s.freeView()
	for _, n := range a.nodes {
		if room := s.roomOn(a, n, by, math.MaxInt32); room > 0 && (best == nil || room < least) {
			best, least = n, room
			if room == 1 {
				break
			}
		}
	}
	return best
}

// FollowAdvice has the review tell advice, and follow it if act is true and the advice is of this evaluation.
func (r *Review) FollowAdvice(advice *Repack, act bool) { r.repack, r.act = advice, act }

// moveNext has the surplus leave that the advice would move, for a gang of the queue that has starved and for which nothing else
// leaves. What left returns like all surplus that gave way: after its job's cooldown, where the gang left room.
func (r *Review) moveNext() {
	if !r.act || r.repack == nil || r.next.AnyMade() {
		return
	}
	g := findGang(r.claiming, r.repack.For)
	if g == nil || r.fitsNow(g) || r.fitsSoon(g) {
		return // There is room.
	}
	if d := r.demandOf(g); d.fitsWithout(r.byAnybody.circleOf(d).surplus) {
		return // Surplus gives way by itself.
	}
	if starved, in := r.docket.Starved(g); !starved {
		r.reviewIn(in)
		return
	}
	p := r.promiseTo(g)
	p.nodes = r.fingerprint(g)
	for i := range r.repack.Moves {
		p.Victims = append(p.Victims, r.repack.Moves[i].Surplus)
	}
}

// tellMoves writes the advice into the verdict of its gang.
func (r *Review) tellMoves(verdicts map[types.NamespacedName]Verdict) {
	if r.repack == nil {
		return
	}
	if v, here := verdicts[r.repack.For]; here && !v.Answer.Fits {
		all := make([]Surplus, len(r.repack.Moves))
		for i := range r.repack.Moves {
			all[i] = r.repack.Moves[i].Surplus
		}
		v.Moves = holdersOf(all)
		verdicts[r.repack.For] = v
	}
}
