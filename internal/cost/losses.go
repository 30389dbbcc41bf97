package cost

import (
	"cmp"
	"slices"

	"github.com/shopspring/decimal"
)

// lose counts what was lost, and charges it to those for whom room was made: what they cost others is in their rows, and not in
// those of whom it was taken from.
func (c *counter) lose() {
	type loss struct {
		*Loss
		cost decimal.Decimal
	}
	losses := make([]loss, 0, len(c.in.Losses))
	for i := range c.in.Losses {
		l := &c.in.Losses[i]
		cost := c.lossOf(l)
		c.lost.Incidents++
		if l.For == nil {
			addTo(&c.lost.Restarts, cost)
			continue
		}
		addTo(&c.lost.Preemptions, cost)
		losses = append(losses, loss{l, cost})
	}
	// A row that has less than what is taken from it gives what it has, so the order matters.
	slices.SortFunc(losses, func(a, b loss) int {
		return cmp.Or(Key(a.Of).compare(Key(b.Of)), Key(*a.For).compare(Key(*b.For)))
	})
	for _, l := range losses {
		c.move(l.cost, l.Of, *l.For)
	}
}

// lossOf is what the pods of a gang cost, in the period, for work that was lost.
func (c *counter) lossOf(l *Loss) decimal.Decimal {
	lost := decimal.Zero
	for i := range l.Pods {
		addTo(&lost, c.lostBy(&l.Pods[i]))
	}
	return lost
}

func (c *counter) lostBy(pods *LostPods) decimal.Decimal {
	p := c.in.Period
	within := Period{From: later(pods.Since, p.From).In(c.zone), To: earlier(pods.Until, p.To).In(c.zone)}
	lost := decimal.Zero
	if !within.From.Before(within.To) {
		return lost
	}
	cuts := within.Cuts()
	for i, from := range cuts[:len(cuts)-1] {
		devices, base := c.devicesOf(pods.Resources, pods.Model, pods.Surplus, c.in.Prices.at(from))
		cores, gib := baseLines(pods.Resources, base)
		var s sums
		s.price(append(devices, cores, gib)...)
		s.times((cuts[i+1].Unix() - from.Unix()) * pods.Number)
		addTo(&lost, s.cost)
	}
	return lost
}

// move charges what was paid for pods of somebody to somebody else, as far as it was paid.
func (c *counter) move(cost decimal.Decimal, from, to Owner) {
	for _, dimension := range Dimensions {
		if r := c.rows[dimension][keyOf(dimension, from)]; r == nil {
			return
		} else if r.cost.LessThan(cost) {
			cost = r.cost
		}
	}
	c.count(from, &sums{cost: cost.Neg()})
	c.count(to, &sums{cost: cost})
}
