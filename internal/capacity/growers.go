package capacity

import (
	"cmp"
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/types"
)

// Grower is a running job that creates only the surplus that fits.
type Grower struct {
	// Gang has the job's missing surplus as its Workers.
	Gang
	// Placed is how much surplus the job has on nodes.
	Placed int32
	// Step is by how many surplus workers the job changes its size; 0 stands for 1.
	Step int32
	// Domains are where the steps have to be, each within one; nil for steps whose workers may be anywhere.
	Domains *StepDomains
	// Gain is what one more worker adds beside so much surplus, where 1 is what a worker of the core adds. It does not rise with the
	// surplus. Nil for the same gain as all others have.
	Gain func(surplus int32) float64
}

// IsJudged is true for a grower whose workers the model covers.
func (g *Grower) IsJudged() bool { return g.beyondModel() == "" }

// WholeSteps is how many of so many surplus workers are whole steps of the job.
func (g *Grower) WholeSteps(workers int32) int32 { return workers - workers%max(g.Step, 1) }

// WholeStepsPlaced is how much of the surplus on nodes is whole steps.
func (g *Grower) WholeStepsPlaced() int32 {
	if g.Domains == nil {
		return g.WholeSteps(g.Placed)
	}
	return g.Domains.whole(max(g.Step, 1))
}

// LimitGrowth divides the free room among the growers: to those of the higher tier first, of one tier to whom the next worker
// gains most, and of equal gain in the order of gangs. Waiting gangs come first: see reserve. It returns how much surplus each
// grower may have in all and, of growers with Domains, where. Room that is too little for a whole step is left to those behind.
func (m *Model) LimitGrowth(
	growers []Grower, waiting []*Gang,
) (limits map[types.NamespacedName]int32, where map[types.NamespacedName][]StepDomain) {
	if len(growers) == 0 {
		return nil, nil
	}
	rest := m.clone()
	for _, g := range orderedGangs(waiting) {
		rest.reserve(g)
	}
	limits = make(map[types.NamespacedName]int32, len(growers))
	line := make([]*growing, 0, len(growers))
	for i := range growers {
		g := &growers[i]
		if limits[g.Job] = g.WholeStepsPlaced(); g.Workers > 0 {
			line = append(line, newGrowing(g))
		} else if g.Domains != nil {
			where = withDomains(where, newGrowing(g))
		}
	}
	slices.SortFunc(line, (*growing).comesBefore)
	for len(line) > 0 {
		c := line[0]
		line = line[1:]
		part := c.share(line)
		fits := rest.grow(c, part)
		if c.has += fits; fits > 0 {
			limits[c.Job] = c.has
		}
		if fits < part || c.left() <= 0 {
			if c.Domains != nil {
				where = withDomains(where, c)
			}
			continue
		}
		c.gain = c.gainBeside(c.has)
		at, _ := slices.BinarySearchFunc(line, c, (*growing).comesBefore)
		line = slices.Insert(line, at, c)
	}
	return limits, where
}

// grow gives a grower room for up to so many workers, and returns for how many: with them it has whole steps.
func (s simulation) grow(c *growing, part int32) int32 {
	if c.Domains != nil {
		return s.growInDomains(c, part)
	}
	fits := c.WholeSteps(c.has+min(s.largest(&c.Gang), part)) - c.has
	if fits > 0 {
		s.placeWorkers(&c.Gang, fits, s.freeView())
	}
	return fits
}

// mostParts is in how many parts a grower's room is divided at most: each costs a look at all nodes.
const mostParts = 64

// growing is a grower that may get more room. has is the surplus that it has with what it got, and gain that of the next worker.
type growing struct {
	*Grower

	has  int32
	gain float64
	// within is what it may have in its Domains.
	within domainGrowth
}

func newGrowing(g *Grower) *growing {
	c := &growing{Grower: g, has: g.Placed}
	if g.Domains != nil {
		c.has, c.within.may = g.WholeStepsPlaced(), g.HeldDomains()
	}
	c.gain = g.gainBeside(c.has)
	return c
}

// gainBeside is the gain of the next worker beside so much surplus.
func (g *Grower) gainBeside(surplus int32) float64 {
	if g.Gain == nil {
		return 0
	}
	return g.Gain(surplus)
}

// left is how many workers it could still get.
func (c *growing) left() int32 { return c.Placed + c.Workers - c.has }

// comesBefore compares who gets room first: negative if this one does.
func (c *growing) comesBefore(o *growing) int {
	return cmp.Or(cmp.Compare(o.Tier, c.Tier), cmp.Compare(o.gain, c.gain), c.Gang.comesBefore(&o.Gang))
}

// share is how many workers it gets before it is the turn of the first of the others: those that gain as much, in whole steps,
// and enough for few turns; all if it is the last of its tier.
func (c *growing) share(others []*growing) int32 {
	left := c.left()
	if len(others) == 0 || others[0].Tier < c.Tier {
		return left
	}
	// The first is always its own: it stands before the other.
	gains := 1 + int32(sort.Search(int(left)-1, func(n int) bool { return c.gainBeside(c.has+int32(n)+1) < others[0].gain }))
	step := max(c.Step, 1)
	part := (max(gains, c.Workers/mostParts) + step - 1) / step * step
	return min(part, left)
}
