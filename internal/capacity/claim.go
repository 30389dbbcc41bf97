package capacity

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Standing decides whether a gang claims room: a training, a merge, or a gang that is not ours. A claim makes others leave, so
// it takes what a scheduler would need to place the gang:
//
//	minMember = placed + missing
//	a gang claims room for its missing members while
//	  its Queue is open, nothing hinders it, and
//	  as many pods wait for a node as members are missing, or the rest is about to be created
//
// A PodGroup alone claims nothing: a quota may refuse its pods (docs/decisions/0040-claims.md).
type Standing struct {
	// MinMember is how many members Volcano places together or not at all.
	MinMember int32
	// Placed counts members that hold a node and do not terminate, and members that have completed: Volcano counts both as ready.
	Placed int32
	// Waiting are the pods without a node that Volcano may place: not ended, not terminating, and without scheduling gates.
	Waiting []Waiter
	// Gated counts pods without a node that scheduling gates keep from every scheduler.
	Gated int32
	// Hindered is true for a gang that waits for something other than room: its pods are refused, its attempt is in a back-off, or
	// an administrator must act first.
	Hindered bool
	// QueueShut is true if the gang's Queue places nothing: it is closed, closing, in an unknown state, or does not exist.
	QueueShut bool
	// Began is the earliest time from which the gang may claim. Before it the gang claimed nothing or did not exist.
	Began time.Time
	// Unread names what of the gang itself the model does not cover; empty for nothing.
	Unread string
	// Arriving is true while missing pods are about to be created. Expected returns the shapes of all that are missing, and
	// what [Gang.AnyOrder] is of them.
	Arriving bool
	Expected func() (common Shape, apart []Shape, anyOrder bool)
}

// Waiter is a pod that waits for a node.
type Waiter struct {
	UID types.UID
	// Rank orders the pods of a gang as the scheduler places them: the lowest first. Index does so among pods of one rank whose
	// names end in different numbers; negative for a name without one.
	Rank, Index int32
	// Since is when the pod was created.
	Since time.Time
	// Shape is shared by pods that ask for the same.
	Shape *Shape
}

// NoClaim is why a gang claims no room.
type NoClaim string

// Why a gang claims no room; empty for one that does.
const (
	ClaimServed     NoClaim = "all members are placed"
	ClaimQueueShut  NoClaim = "its Queue is not open"
	ClaimHindered   NoClaim = "it waits for something other than room"
	ClaimGated      NoClaim = "scheduling gates hold its pods"
	ClaimIncomplete NoClaim = "fewer pods wait than members are missing"
)

// MostShapes is how many different shapes the pods of a gang may have.
const MostShapes = mostApart + 1

// mostApart is how many workers of a gang may have a shape of their own. Each is placed by itself in every question, so the model
// does not cover a gang with more.
const mostApart = 32

// CompleteClaim fills in what the gang waits for: how many workers, their shapes, their pods, since when. It returns why the
// gang claims nothing, and then leaves the gang as it is.
func (s *Standing) CompleteClaim(g *Gang) NoClaim {
	missing := s.MinMember - s.Placed
	switch {
	case missing <= 0:
		return ClaimServed
	case s.QueueShut:
		return ClaimQueueShut
	case s.Hindered:
		return ClaimHindered
	case len(s.Waiting) >= int(missing):
		s.claimFor(g, missing)
		return ""
	case s.Gated > 0:
		return ClaimGated
	case !s.Arriving:
		return ClaimIncomplete
	}
	g.Workers, g.Since = missing, s.Began
	g.Shape, g.Apart, g.AnyOrder = s.Expected()
	g.Pods = uidsOf(s.Waiting)
	return ""
}

// claimFor claims room for the pods that the scheduler places first.
func (s *Standing) claimFor(g *Gang, missing int32) {
	waiting := slices.Clone(s.Waiting)
	slices.SortFunc(waiting, compareTurns)
	waiting = waiting[:missing]
	g.Workers, g.Pods, g.Since = missing, uidsOf(waiting), s.Began
	for _, w := range waiting {
		if w.Since.After(g.Since) {
			g.Since = w.Since
		}
	}
	g.Shape, g.Apart, g.AnyOrder = shapesOf(waiting)
	g.Shape.Unmodelled = cmp.Or(g.Shape.Unmodelled, s.Unread)
}

// compareTurns orders the pods of a gang as the scheduler places them, which is volcano.sh/volcano/pkg/controllers/job/helpers,
// CompareTask, after plugin priority.
func compareTurns(a, b Waiter) int {
	if a.Rank == b.Rank && a.Index != b.Index && a.Index >= 0 && b.Index >= 0 {
		return cmp.Compare(a.Index, b.Index)
	}
	return cmp.Or(cmp.Compare(a.Rank, b.Rank), a.Since.Compare(b.Since), cmp.Compare(a.UID, b.UID))
}

// IndexIn is the number by which the scheduler orders a pod in its gang: what follows the last of two or more dashes in its name;
// negative for a name without one.
func IndexIn(name string) int32 {
	parts := strings.Split(name, "-")
	n, err := strconv.ParseInt(parts[len(parts)-1], 10, 32)
	if err != nil || len(parts) < 3 {
		return -1
	}
	return int32(n)
}

// shapesOf returns the shape that most pods have, and the shapes of the others. If two are equally frequent the later one is the
// common one, because a launcher or worker 0 comes first. anyOrder is true unless all others are placed first.
func shapesOf(waiting []Waiter) (common Shape, apart []Shape, anyOrder bool) {
	count := map[*Shape]int{}
	var most *Shape
	for _, w := range waiting {
		count[w.Shape]++
		if most == nil || count[w.Shape] >= count[most] {
			most = w.Shape
		}
	}
	common = *most
	first := slices.IndexFunc(waiting, func(w Waiter) bool { return w.Shape == most })
	anyOrder = first > 0 && compareTurns(waiting[first-1], waiting[first]) == 0
	for i, w := range waiting {
		if w.Shape == most {
			continue
		}
		if len(apart) == mostApart {
			common.Unmodelled = cmp.Or(common.Unmodelled, ManyShapes)
			return common, nil, false
		}
		apart, anyOrder = append(apart, *w.Shape), anyOrder || i > first
	}
	return common, apart, anyOrder
}

// uidsOf lists the pods' UIDs in order.
func uidsOf(waiting []Waiter) []types.UID {
	var all []types.UID
	for _, w := range waiting {
		all = append(all, w.UID)
	}
	slices.Sort(all)
	return all
}
