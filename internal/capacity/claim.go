package capacity

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Standing is what decides whether a gang waits for room: a training, a merge or a gang of others.
//
//	minMember = placed + missing
//	a gang claims room for its missing members while
//	  its Queue is open, nothing hinders it, and
//	  as many pods wait for a node as members are missing, or the rest is about to be created
type Standing struct {
	// MinMember is how many members the gang has placed together or not at all.
	MinMember int32
	// Placed counts members that hold a node and do not terminate, and members that have completed: Volcano counts both as ready.
	Placed int32
	// Waiting are the pods without a node that Volcano may place: not ended, not terminating, and without scheduling gates.
	Waiting []Waiter
	// Gated counts pods without a node that scheduling gates keep from every scheduler.
	Gated int32
	// Hindered is true for a gang that waits for something else than room: its pods are refused, its attempt is in a
	// back-off, or an administrator must act first.
	Hindered bool
	// QueueShut is true for a gang in a Queue that places nothing: closed, closing, of an unknown state, or not there.
	QueueShut bool
	// Began is the earliest time from which the gang may claim: before it the gang was seen to claim nothing, or did not exist.
	Began time.Time
	// Arriving is true while pods that are missing are about to be created, and Expected tells the shapes of all that are missing.
	Arriving bool
	Expected func() (common Shape, apart []Shape)
}

// Waiter is a pod that waits for a node.
type Waiter struct {
	UID types.UID
	// Rank orders the pods of a gang as the scheduler places them: the lowest first.
	Rank int32
	// Since is when the pod was created.
	Since time.Time
	// Shape is shared by pods that ask for the same.
	Shape *Shape
}

// NoClaim is why a gang claims no room.
type NoClaim string

// Why a gang claims no room; empty for one that does.
const (
	ClaimServed     NoClaim = "all members have their places"
	ClaimQueueShut  NoClaim = "its Queue is not open"
	ClaimHindered   NoClaim = "it waits for something else than room"
	ClaimGated      NoClaim = "scheduling gates hold its pods"
	ClaimIncomplete NoClaim = "fewer pods wait than members are missing"
)

// ManyShapes is what the model does not cover of a gang whose pods ask for too many different things.
const ManyShapes = "pods of too many shapes"

// MostShapes is how many shapes pods of a gang may have that the model covers.
const MostShapes = mostApart + 1

// mostApart is how many workers of a gang may have a shape of their own. Beyond it the model does not cover the gang: each
// of them is placed by itself, in each question.
const mostApart = 32

// Claim completes the gang with what it waits for: how many workers, of which shapes, by which pods, since when. It returns why
// the gang claims nothing; its figures mean nothing then.
func (s *Standing) Claim(g *Gang) NoClaim {
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
	g.Shape, g.Apart = s.Expected()
	g.Pods = uidsOf(s.Waiting)
	return ""
}

// claimFor claims room for the pods that the scheduler places first.
func (s *Standing) claimFor(g *Gang, missing int32) {
	waiting := slices.Clone(s.Waiting)
	slices.SortFunc(waiting, func(a, b Waiter) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), a.Since.Compare(b.Since), cmp.Compare(a.UID, b.UID))
	})
	waiting = waiting[:missing]
	g.Workers, g.Pods, g.Since = missing, uidsOf(waiting), s.Began
	for _, w := range waiting {
		if w.Since.After(g.Since) {
			g.Since = w.Since
		}
	}
	g.Shape, g.Apart = shapesOf(waiting)
}

// shapesOf is the shape that most pods have, and those of the others. Of two that are as frequent the later is the common one,
// because a launcher or a worker 0 comes first.
func shapesOf(waiting []Waiter) (common Shape, apart []Shape) {
	count := map[*Shape]int{}
	var most *Shape
	for _, w := range waiting {
		count[w.Shape]++
		if most == nil || count[w.Shape] >= count[most] {
			most = w.Shape
		}
	}
	common = *most
	for _, w := range waiting {
		if w.Shape == most {
			continue
		}
		if len(apart) == mostApart {
			common.Unmodelled = cmp.Or(common.Unmodelled, ManyShapes)
			return common, nil
		}
		apart = append(apart, *w.Shape)
	}
	return common, apart
}

func uidsOf(waiting []Waiter) []types.UID {
	var all []types.UID
	for _, w := range waiting {
		all = append(all, w.UID)
	}
	slices.Sort(all)
	return all
}
