package cost

import (
	"cmp"
	"maps"
	"slices"

	"github.com/shopspring/decimal"
)

// Trained is what became of the GPU time of trainings that report their progress.
type Trained struct {
	Owner Owner
	// Queue of the trainings; empty for none.
	Queue string
	// Held by ready workers, in GPU-seconds, and the parts of it that led to steps that stand, and to steps that were lost.
	Held, Kept, Lost int64
}

// Goodput is what became of the GPU time of trainings that report their progress, in GPU-hours. Where none does, Held is zero.
type Goodput struct {
	// Held by ready workers, Kept the part of it that led to steps that stand, Lost to steps that were taken in vain.
	Held, Kept, Lost decimal.Decimal
}

// IsKnown is false if no training reports its progress.
func (g Goodput) IsKnown() bool { return g.Held.IsPositive() }

// KeptShare is the part that was kept.
func (g Goodput) KeptShare() Ratio { return ratioOf(g.Kept, g.Held) }

// AddGoodput is the sum of both.
func (g Goodput) AddGoodput(o Goodput) Goodput {
	return Goodput{g.Held.Add(o.Held), g.Kept.Add(o.Kept), g.Lost.Add(o.Lost)}
}

// WithoutPart is what is left without a part.
func (g Goodput) WithoutPart(part Goodput) Goodput {
	return Goodput{g.Held.Sub(part.Held), g.Kept.Sub(part.Kept), g.Lost.Sub(part.Lost)}
}

// Queue is what became of GPU time in a queue.
type Queue struct {
	// Name of the queue; empty for trainings in none.
	Name string
	Goodput
}

// trainedSums are GPU-seconds.
type trainedSums struct{ held, kept, lost int64 }

func (t *trainedSums) add(o trainedSums) {
	t.held, t.kept, t.lost = t.held+o.held, t.kept+o.kept, t.lost+o.lost
}

func (t *trainedSums) toGoodput() Goodput {
	hours := func(seconds int64) decimal.Decimal {
		return decimal.New(seconds, 0).DivRound(decimal.New(3600, 0), places)
	}
	return Goodput{hours(t.held), hours(t.kept), hours(t.lost)}
}

// countTrained counts what became of GPU time in the rows that there are. Days of progress are those of UTC, so that one may be
// of a task that held nothing in the period: it makes no row.
func (c *counter) countTrained(t *Trained) {
	if c.rows[ByTask][keyOf(ByTask, t.Owner)] == nil {
		return
	}
	s := trainedSums{t.Held, t.Kept, t.Lost}
	for _, dimension := range Dimensions {
		if r := c.rows[dimension][keyOf(dimension, t.Owner)]; r != nil {
			r.trained.add(s)
		}
	}
	c.total.trained.add(s)
	of := c.queues[t.Queue]
	of.add(s)
	c.queues[t.Queue] = of
}

// listQueues lists the queues in which trainings report their progress, the one with the most GPU time that was not kept
// first.
func (c *counter) listQueues() []Queue {
	var list []Queue
	for _, name := range slices.Sorted(maps.Keys(c.queues)) {
		of := c.queues[name]
		if g := of.toGoodput(); g.IsKnown() {
			list = append(list, Queue{name, g})
		}
	}
	slices.SortStableFunc(list, func(a, b Queue) int {
		return cmp.Or(b.Held.Sub(b.Kept).Cmp(a.Held.Sub(a.Kept)), cmp.Compare(a.Name, b.Name))
	})
	return list
}
